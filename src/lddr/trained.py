"""A trained model, for use from Python: images in, codes and images out, all as numpy arrays."""

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from lddr.arrays import as_array
from lddr.config import Config, changed, configure
from lddr.data import as_resolution
from lddr.data.dataset import Dataset, datasets
from lddr.data.in_memory import arranged, as_images, pictures_of
from lddr.data.load import as_dataset, indexed, load_dataset, own_size
from lddr.data.pictures import Preparation, as_bytes, as_hex, prepared
from lddr.data.samples import read_samples
from lddr.errors import UserError
from lddr.files import reading_untrusted
from lddr.hardware import OnLog, chosen_device
from lddr.latents import latents
from lddr.latents.latent import Latent, Posterior, usual_supervision
from lddr.likelihoods import Likelihood
from lddr.models import models
from lddr.networks import decoders, encoders
from lddr.objectives import objectives
from lddr.objectives.objective import Objective
from lddr.parts import likelihoods
from lddr.runs.folder import FORMAT, RunFolder, located, upgraded
from lddr.runs.loop import Stopped
from lddr.runs.run import Machine, run
from lddr.training.batches import as_tensor
from lddr.training.checkpoint import check_fit, load_model, load_module, module_tensors, save_model
from lddr.training.trainer import prepare_vae, vae_of
from lddr.vae import VAE, evaluating

HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
CHUNK = 256  # images that go through the networks at once
Paths = str | Path | Iterable[str | Path]


class Trained:
    """A trained VAE: numpy arrays in, numpy arrays out.

    Images are (count, height, width, channels), uint8 or floats in [0, 1], or the paths of pictures; images that are
    returned are floats. With `resize=True`, images of any size and channels are prepared as in training. `lddr.train`
    and `Trained.load` return such a model; its PyTorch module is `vae`.

    Examples
    --------
    >>> import lddr
    >>> trained = lddr.Trained.load("circles-dvae")  # ships with lddr
    >>> images = lddr.load_dataset("circles", 32).images([0, 1, 2])
    >>> codes = trained.represent(images)
    >>> codes.shape, trained.decode(codes).shape
    ((3, 2), (3, 32, 32, 1))
    """

    def __init__(
        self,
        config: Config,
        vae: VAE,
        image_shape: tuple[int, int, int],
        folder: Path | None = None,
        background: str | None = None,
    ) -> None:
        self.config, self.image_shape, self.folder = config, image_shape, folder
        self.vae = vae.eval()
        self._background = background
        self._objective: Objective | None = None

    @property
    def device(self) -> torch.device:
        """The device of the networks."""
        return next(self.vae.parameters()).device

    def to(self, device: str | torch.device) -> "Trained":
        """Move the model to a device (cpu, cuda, mps, or auto for the best available) and return it."""
        self.vae.latent.cache_mask()
        self.vae.to(chosen_device(str(device)))
        return self

    @property
    def preparation(self) -> Preparation:
        """How pictures are prepared before they are encoded."""
        fit = "pad" if self.config.dataset in datasets else self.config.fit
        return Preparation.of(self.image_shape, fit, self.config.background).on(self._background)

    def __repr__(self) -> str:
        values = f" of {self.vae.latent.active.shape[1]} values" if self.is_discrete else ""
        size, where = "x".join(map(str, self.image_shape)), f", from {self.folder}" if self.folder else ""
        return f"<{self.config.model}: {self.num_latents} latents{values}, {self.config.dataset} at {size}{where}>"

    def read(self, paths: Paths) -> NDArray[np.uint8]:
        """Read pictures and prepare them as in training: EXIF orientation, transparency, aspect ratio, size, channels.

        If there were no transparent pictures in training, those of one call get the background that shows them best.

        Parameters
        ----------
        paths
            One or several files or folders.

        Returns
        -------
        numpy.ndarray
            uint8, (count, height, width, channels).
        """
        given = [paths] if isinstance(paths, str | Path) else list(paths)
        if not given:
            raise UserError("there are no pictures to read; give at least one path")
        return prepared(given, self.preparation)

    def represent(self, images: ArrayLike | Paths, resize: bool = False) -> NDArray[np.float32]:
        """Encode images.

        Parameters
        ----------
        images
            (count, height, width, channels), or paths of pictures.
        resize
            Prepare images of another shape as in training, instead of raising an error.

        Returns
        -------
        numpy.ndarray
            Codes, (count, latents): the expected value of every latent.
        """
        return self._encoded(images, lambda posterior: posterior.mean, resize)

    def posterior(self, images: ArrayLike | Paths, resize: bool = False) -> NDArray[np.float32]:
        """Return the probability of every value, (count, latents, values); for Gaussian latents mean and variance."""
        return self._encoded(images, lambda posterior: posterior.parameters, resize)

    def categories(self, images: ArrayLike | Paths, resize: bool = False) -> NDArray[np.int64]:
        """Return the most probable category of every latent: (count, latents)."""
        self._need_categories()
        return self.posterior(images, resize).argmax(axis=2)

    def reconstruct(self, images: ArrayLike | Paths, resize: bool = False) -> NDArray[np.float32]:
        """Return the decoded codes of images."""
        return self.decode(self.represent(images, resize))

    @torch.no_grad()
    def decode(self, codes: ArrayLike) -> NDArray[np.float32]:
        """Decode codes.

        Parameters
        ----------
        codes
            (count, latents): floats are values of the latents, integers are categories.

        Returns
        -------
        numpy.ndarray
            Expected images in [0, 1], (count, height, width, channels).
        """
        array = as_array(codes)
        if array.ndim != 2 or array.shape[1] != self.num_latents:
            raise UserError(f"expected codes of shape (count, {self.num_latents}), got {array.shape}")
        parts = torch.from_numpy(self._values(array)).to(self.device).split(CHUNK)
        pictures = [self.vae.decode(self.vae.latent.embed(part)).cpu() for part in parts]
        return torch.cat(pictures).permute(0, 2, 3, 1).contiguous().numpy()

    def traverse(self, image: ArrayLike | str | Path, latent: int, resize: bool = False) -> NDArray[np.float32]:
        """Decode an image with one latent at each of its values, and the others as they are.

        Parameters
        ----------
        image
            (height, width, channels), or the path of a picture.
        latent
            Index of the latent.
        resize
            Prepare an image of another shape as in training.

        Returns
        -------
        numpy.ndarray
            (values, height, width, channels): one image for each value of `values_of(latent)`.
        """
        code = self.represent(image if isinstance(image, str | Path) else as_array(image)[np.newaxis], resize)
        values = self.values_of(latent)
        codes = np.repeat(code, len(values), axis=0)
        codes[:, latent] = values
        return self.decode(codes)

    def values_of(self, latent: int) -> NDArray[np.float32]:
        """Return the values of a traversal of this latent: its active categories, or from -2 to 2 for a Gaussian."""
        if not 0 <= latent < self.num_latents:
            raise UserError(f"there is no latent {latent}; this model has the latents 0 to {self.num_latents - 1}")
        return self.vae.latent.values_of(latent).cpu().numpy()

    @property
    def samples(self) -> NDArray[np.uint8]:
        """Images of the training set that were shared with the model, as samples.png in its folder; often none.

        uint8, (count, height, width, channels).
        """
        path = None if self.folder is None else RunFolder(self.folder).samples_file
        if path is None or not path.exists():
            return np.empty((0, *self.image_shape), np.uint8)
        return read_samples(path, self.image_shape)

    @property
    def num_latents(self) -> int:
        """Number of latents, and of numbers in a code."""
        return self.vae.latent.num_latents

    @property
    def is_discrete(self) -> bool:
        """Whether its latents have categories."""
        return self.vae.latent.is_discrete

    def save(self, folder: str | Path) -> None:
        """Write model.safetensors, which holds weights and settings, into a folder; `load` reads it."""
        facts = {"format": FORMAT, "settings": self.config.as_dict(), "image_shape": list(self.image_shape)}
        facts["background"] = self._background
        save_model(RunFolder(folder).model_file, module_tensors("vae", self.vae), facts)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        encoder: nn.Module | None = None,
        decoder: nn.Module | None = None,
        latent: Latent | None = None,
        likelihood: Likelihood | None = None,
    ) -> "Trained":
        """Load a model.

        Parameters
        ----------
        folder
            A run folder, a folder that `save` wrote to, or the name of a model that ships with lddr.
        encoder, decoder, latent, likelihood
            Your own modules, if the model was trained with them: files hold weights and settings, and no code. Their
            weights are replaced.

        Returns
        -------
        Trained
            The model, on the CPU.
        """
        place = located(folder) if isinstance(folder, str) else folder
        path = RunFolder(place).model_file
        tensors, facts = load_model(path)
        tensors = {name: tensor.float() if tensor.dtype == torch.half else tensor for name, tensor in tensors.items()}
        with reading_untrusted(path, "a model of lddr", "train it again or copy it again"):
            facts = upgraded(facts, path)
            config, background = Config.from_dict(facts["settings"]), facts.get("background")
            height, width, channels = map(operator.index, facts["image_shape"])
            shape, background = (height, width, channels), background and as_hex(background)
            own = {"encoder": encoder, "decoder": decoder, "latent": latent, "likelihood": likelihood}
            with torch.device("meta"):  # no memory: wrong settings could ask for any amount
                check_fit("vae", module_tensors("vae", vae_of(config, shape, **own)), tensors)
            vae = vae_of(config, shape, **own)
        vae = vae.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        load_module("vae", vae, tensors)
        return cls(config, vae, shape, place, background)

    @classmethod
    def from_pretrained(cls, name: str | Path, revision: str | None = None, token: str | None = None) -> "Trained":
        """Load what `load` takes, or a model of the Hugging Face Hub: OWNER/NAME, at a revision if given."""
        if not str(name):
            raise UserError("from_pretrained needs a folder, a model that ships with lddr, or OWNER/NAME of the Hub")
        place = located(name)
        if place.exists() or not HUB_NAME.fullmatch(str(name)):
            if revision is not None:
                raise UserError(f"{name} is not on the Hugging Face Hub and has no revisions; leave revision out")
            return cls.load(place)
        from lddr.sharing import pull

        return pull(str(name), revision, token)

    def push_to_hub(
        self,
        repo_id: str,
        private: bool | None = None,
        token: str | None = None,
        revision: str | None = None,
        license: str | None = None,  # noqa: A002 (the Hub's word)
        samples: int = 0,
    ) -> str:
        """Upload it with its scores, settings and a card to the Hugging Face Hub, and return its address there.

        With `samples`, that many images of its training set are uploaded, too: `Trained.samples` of those who load it.
        """
        from lddr.sharing import push

        return push(self, repo_id, private, token, revision, license, samples)

    def objective(self) -> Objective:
        """Return the objective it was trained with; a discriminator is read once from the run's folder."""
        if self._objective is None:
            objective = self.config.objective.build().attach(self.vae.latent).eval()
            if objective.discriminator is not None:
                path = None if self.folder is None else RunFolder(self.folder).discriminator_file
                if path is None or not path.exists():
                    remedy = "load it from the folder of its run"
                    raise UserError(f"this model was saved without its discriminator; {remedy}")
                tensors, _ = load_model(path)
                load_module("discriminator", objective.discriminator, tensors)
            self._objective = objective
        return self._objective.to(self.device)

    @torch.no_grad()
    def _encoded(self, images: ArrayLike | Paths, take: Callable[[Posterior], Tensor], resize: bool) -> NDArray[Any]:
        array = self._array(images)
        if array.shape[1:] != self.image_shape and not resize:
            size = ", ".join(map(str, self.image_shape))
            raise UserError(
                f"expected images of shape (count, {size}), got {array.shape}; resize=True prepares them as in training"
            )
        preparation = self.preparation.seeing(pictures_of(array))
        parts = (array[first : first + CHUNK] for first in range(0, max(1, len(array)), CHUNK))
        return np.concatenate([take(self.vae.encode(self._tensor(part, preparation))).cpu().numpy() for part in parts])

    def _array(self, images: Any) -> NDArray:
        return arranged(self.read(images) if _are_paths(images) else images)

    def _tensor(self, images: NDArray, preparation: Preparation) -> Tensor:
        if images.shape[1:] != self.image_shape:
            images = preparation.of_images(as_bytes(images))
        return as_tensor(as_images(images, self.image_shape), self.device)

    def _values(self, codes: NDArray) -> NDArray[np.float32]:
        if not np.issubdtype(codes.dtype, np.integer):
            return codes.astype(np.float32)
        self._need_categories()
        values = self.vae.latent.values().detach().cpu().numpy()  # (latents, values)
        if codes.size and not 0 <= codes.min() <= codes.max() < values.shape[1]:
            raise UserError(f"categories go from 0 to {values.shape[1] - 1}; give floats for values of latents")
        return values[np.arange(self.num_latents), codes]

    def _need_categories(self) -> None:
        if not self.is_discrete:
            raise UserError(f"{self.vae.latent.title} latents have no categories; give values of latents as floats")


def _are_paths(images: Any) -> bool:
    if isinstance(images, list | tuple):
        return bool(images) and all(isinstance(each, str | Path) for each in images)
    return isinstance(images, str | Path)


def train(
    dataset: Any,
    model: str | VAE | None = None,
    preset: str = "quick",
    out: str | Path | None = None,
    machine: Machine | None = None,
    on_log: OnLog | None = None,
    seeds: int = 1,
    factors: Any = None,
    **settings: Any,
) -> Trained:
    """Train a model on images.

    Parameters
    ----------
    dataset
        A dataset of lddr or its name, the path of a folder or file, an array or tensor of any framework, a memory map,
        a torch `Dataset` or `DataLoader`, or an iterable of images or batches.
    model
        Name of a model, by default a D-VAE, or a `lddr.VAE`, which is trained in place. `latent` and `objective` among
        the settings name a model, too.
    preset
        "quick" (32x32) and "standard" (64x64) take minutes; "paper" has the paper's settings.
    out
        Folder below which the run is kept.
    machine
        Device, threads and how to report progress.
    on_log
        Called with the step and the values of every line of the log; an exception in it ends the training.
    seeds
        How many models to train, from `seed` on: on all cores if Ray is installed; one after the other if not, or on a
        GPU. The one whose codes agree most with those of the others is returned; the reasons are printed. With `out`,
        it gets a page that shows its latents.
    factors
        Labels of the images: an array (images,) or (images, factors), a DataFrame, a dict of columns, or True for the
        labels of a torch dataset. NaN, None and "" are unknown values, and so is -1 in a column without other negative
        numbers.
    **settings
        Any setting of `lddr train`, such as num_latents, steps, seed or supervision.

    Returns
    -------
    Trained
        The trained model.

    Notes
    -----
    Your own images are scaled to `resolution`, pixels per side or "HEIGHTxWIDTH", if it is given. Otherwise they keep
    their size from 8 to 512 pixels a side, and pictures of several sizes become squares of up to 64; the quick preset
    makes the longer side 32 at most. A `Dataset` of lddr is taken as it is.

    All known labels supervise the training (`labels` draws fewer), latent i by factor i. The loss is `supervision`,
    by default "masked" for categorical latents, "bce" for Gaussian ones and "l2" for rounded ones; supervision=None
    trains without the labels.

    Examples
    --------
    >>> import lddr
    >>> machine = lddr.Machine("cpu", threads=1, quiet=True)
    >>> trained = lddr.train("circles", "vae", steps=2, resolution=16, width=4, mean_bias=False, machine=machine)
    >>> trained.num_latents, trained.image_shape
    (2, (16, 16, 1))
    """
    if on_log is not None:
        machine = replace(machine or Machine(), on_log=on_log)
    if factors is not None and isinstance(dataset, str | Path | Dataset):
        raise UserError("factors are labels of an array of images; put those of a folder into its factors.csv")
    objective = settings.pop("objective") if isinstance(settings.get("objective"), Objective) else None
    if objective is not None:
        chosen = objectives.choice_of(objective)
        settings |= {"objective": chosen.name, **chosen.settings}
    vae = model if isinstance(model, VAE) else None
    if factors is not None and "supervision" not in settings:
        settings["supervision"] = _usual_supervision(model, settings)
    quiet = machine is not None and machine.quiet
    if isinstance(model, VAE):
        config, loaded = _around(model, dataset, preset, settings, factors, quiet)
    else:
        config, loaded = _chosen(dataset, model, preset, settings, factors, quiet)
    is_few = factors is not None or not loaded.space.is_complete
    if config.supervision is not None and is_few and settings.get("labels") is None:
        config = changed(config, {"labels": loaded.space.num_labelled})

    parts = () if vae is None else ("encoder", "decoder", "latent", "likelihood")
    own: dict[str, Any] = {part: getattr(vae, part) for part in parts}

    def run_below(place: Path) -> Path:
        if seeds == 1:
            return run(config, place, machine, loaded, vae and prepare_vae(vae, config, loaded), objective)
        if own or objective is not None:
            raise UserError("seeds would train the same modules again; train each seed with modules of its own")
        from lddr.seeds import train_seeds

        in_memory = None if isinstance(dataset, str | Path) else loaded
        return train_seeds(config, seeds, place, machine, in_memory, card=out is not None)

    if out is not None:
        return Trained.load(run_below(Path(out)), **own)
    with TemporaryDirectory() as folder:
        try:
            trained = Trained.load(run_below(Path(folder)), **own)
        except Stopped:
            raise Stopped("training was stopped and nothing kept; with out=FOLDER it could be resumed") from None
        trained.objective()  # keeps a discriminator: the folder is about to vanish
        trained.folder = None
        return trained


def _around(
    vae: VAE, dataset: Any, preset: str, settings: dict[str, Any], factors: Any, quiet: bool
) -> tuple[Config, Dataset]:
    """Return the settings of a run with a user's own model, and the images in their own size."""
    asked = {name: settings.pop(name) for name in ("resolution", "fit", "background") if name in settings}
    images = as_dataset(dataset, factors, **asked, quiet=quiet)
    _check_shapes(vae, images.image_shape)
    latent, likelihood = latents.choice_of(vae.latent), likelihoods.choice_of(vae.likelihood)
    names = {"latent": latent.name, "likelihood": likelihood.name, "objective": settings.pop("objective", None)}
    settings = {**latent.settings, **likelihood.settings, **_made(images, {}), **settings}
    config = configure(None, images.name, preset, **names, **settings)
    networks = {"encoder": encoders.choice_of(vae.encoder).name, "decoder": decoders.choice_of(vae.decoder).name}
    return changed(config, networks), images


@torch.no_grad()
def _check_shapes(vae: VAE, image_shape: tuple[int, int, int]) -> None:
    """Raise an error if the networks do not fit the latent or the images."""
    height, width, channels = image_shape
    shape, device = (2, channels, height, width), next(vae.parameters()).device
    with evaluating(vae):
        try:
            outputs = vae.encoder(torch.zeros(shape, device=device))
            pictures = vae.decoder(torch.zeros(2, vae.latent.width, device=device))
        except RuntimeError as error:
            raise UserError(f"the networks do not take images of {height}x{width}x{channels}: {error}") from error
    for what, found, wanted in (
        ("encoder must give latent.num_parameters numbers for each image", outputs, (2, vae.latent.num_parameters)),
        ("decoder must give images of the shape it is trained on", pictures, shape),
    ):
        if tuple(found.shape) != wanted:
            raise UserError(f"the {what}: for two images {wanted}, not {tuple(found.shape)}")


def _usual_supervision(model: str | VAE | None, settings: dict[str, Any]) -> str:
    """Return the loss for labels that are given without naming a loss."""
    if isinstance(model, VAE):
        family: Any = model.latent
    else:
        family = models[models.chosen(model, settings.get("latent"), settings.get("objective"))].family
    loss = usual_supervision(family)
    if loss is None:
        raise UserError(f"{family.name} latents have no loss for labels; set supervision=None to train without them")
    return loss


def _chosen(
    dataset: Any, model: str | None, preset: str, settings: dict[str, Any], factors: Any, quiet: bool
) -> tuple[Config, Dataset]:
    """Return the settings of a run, and its images."""
    if isinstance(dataset, Dataset):
        settings = settings | _made(dataset, settings)
        return configure(model, dataset.name, preset, own_factors=len(dataset.space.factors), **settings), dataset
    images = indexed(dataset, quiet)
    name = images if isinstance(images, str) else "array"
    size = own_size(images) if settings.get("resolution") is None else None
    chosen = partial(configure, model, name, preset, own_size=size, **settings)
    config = chosen()
    if isinstance(images, str):
        loaded = load_dataset(*config.images)
        return chosen(own_factors=len(loaded.space.factors)), loaded
    made = as_dataset(images, factors, config.resolution or size, config.fit, config.background, quiet)
    config = chosen(own_factors=len(made.space.factors))
    return replace(config, dataset=made.name, resolution=as_resolution(*made.image_shape[:2])), made


def _made(dataset: Dataset, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that a dataset fixes: the size of its images and how they were fitted."""
    for name in ("fit", "background"):
        if settings.get(name) is not None:
            raise UserError(f"a Dataset is taken as it is; leave {name} out, or give it where the dataset is made")
    made, resolution = dataset.preparation, as_resolution(*dataset.image_shape[:2])
    if made is None or made.fit is None or dataset.name in datasets:
        return {"resolution": resolution, "fit": "legacy"}
    return {"resolution": resolution, "fit": made.fit, "background": made.padding or "auto"}
