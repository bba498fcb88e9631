"""A trained model, for use from Python: images in, codes and images out, all as numpy arrays."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from lddr.config import Config, configure
from lddr.data.array import ArrayDataset, as_images
from lddr.data.dataset import Dataset
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.models.categorical import CategoricalLatent
from lddr.models.latent import Latent
from lddr.models.nets import Discriminator
from lddr.models.vae import VAE
from lddr.objectives.losses import Factor
from lddr.runs.carry_out import Machine, run
from lddr.runs.folder import FORMAT, RunFolder, checked_format
from lddr.training.checkpoint import load_model, load_module, module_tensors, save_model
from lddr.training.feed import as_tensor

CHUNK = 256  # images that go through the networks at once
TRAVERSAL = 10  # values of a Gaussian latent, from two standard deviations below its prior's mean to two above


class Trained:
    """A trained VAE; images are (count, height, width, channels), uint8 or floats in [0, 1], and come out as floats."""

    def __init__(self, config: Config, vae: VAE, image_shape: tuple[int, int, int], folder: Path | None = None) -> None:
        self.config, self.image_shape, self.folder = config, image_shape, folder
        self.vae = vae.eval()

    def represent(self, images: ArrayLike) -> NDArray[np.float32]:
        """The codes: the expected value of every latent, (count, latents)."""
        return self._encoded(images, lambda latent: latent.mean)

    def posterior(self, images: ArrayLike) -> NDArray[np.float32]:
        """Categorical: the probability of every category, (count, latents, categories); Gaussian: mean and variance."""
        if self.is_discrete:
            return self._encoded(images, lambda latent: latent.parameters.exp())
        return self._encoded(images, lambda latent: torch.stack([latent.mean, latent.variance], dim=2))

    def categories(self, images: ArrayLike) -> NDArray[np.int64]:
        """The most probable category of every latent: (count, latents)."""
        self._need_categories()
        return self.posterior(images).argmax(axis=2)

    def reconstruct(self, images: ArrayLike) -> NDArray[np.float32]:
        """Images through the codes and back."""
        return self.decode(self.represent(images))

    @torch.no_grad()
    def decode(self, codes: ArrayLike) -> NDArray[np.float32]:
        """Images of codes (count, latents): floats are values of the latents, whole numbers are categories."""
        array = np.asarray(codes)
        if array.ndim != 2 or array.shape[1] != self.num_latents:
            raise UserError(f"expected codes of shape (count, {self.num_latents}), got {array.shape}")
        values = torch.from_numpy(self._values(array))
        pictures = [self.vae.decoder(part).sigmoid() for part in values.split(CHUNK)]
        return torch.cat(pictures).permute(0, 2, 3, 1).contiguous().numpy()

    def traverse(self, image: ArrayLike, latent: int) -> NDArray[np.float32]:
        """The image with one latent at each of its active categories (Gaussian: from -2 to 2), the others kept."""
        code = self.represent(np.asarray(image)[np.newaxis])
        values = self.values_of(latent)
        codes = np.repeat(code, len(values), axis=0)
        codes[:, latent] = values
        return self.decode(codes)

    def values_of(self, latent: int) -> NDArray[np.float32]:
        """The values a traversal of this latent goes through."""
        if not 0 <= latent < self.num_latents:
            raise UserError(f"there is no latent {latent}; this model has the latents 0 to {self.num_latents - 1}")
        if isinstance(self.vae.family, CategoricalLatent):
            return self.vae.family.positions[self.vae.family.active[latent]].numpy()
        return np.linspace(-2, 2, TRAVERSAL, dtype=np.float32)

    @property
    def num_latents(self) -> int:
        return self.vae.family.num_latents

    @property
    def is_discrete(self) -> bool:
        return isinstance(self.vae.family, CategoricalLatent)

    def save(self, folder: str | Path) -> None:
        """Write model.safetensors, which holds weights and settings, into a folder; `load` reads it."""
        facts = {"format": FORMAT, "settings": self.config.as_dict(), "image_shape": list(self.image_shape)}
        save_model(RunFolder(folder).model_file, module_tensors("vae", self.vae), facts)

    @classmethod
    def load(cls, folder: str | Path) -> "Trained":
        """The model of a run folder, or of a folder `save` wrote to."""
        path = RunFolder(folder).model_file
        tensors, facts = load_model(path)
        config = Config.from_dict(facts["settings"], checked_format(facts, path))
        shape = tuple(facts["image_shape"])
        family = config.latent.build(tensors.get("vae.family.active"))
        vae = VAE(shape, family, config.networks).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        load_module("vae", vae, tensors)
        return cls(config, vae, shape, Path(folder))

    def discriminator(self) -> Discriminator:
        """The discriminator this model was trained against; it is kept in the run's folder only."""
        objective = self.config.objective
        if not isinstance(objective, Factor):
            raise UserError(f"{self.config.model} has no discriminator")
        path = None if self.folder is None else RunFolder(self.folder).adversary_file
        if path is None or not path.exists():
            raise UserError("this model was saved without its discriminator; load it from the folder of its run")
        tensors, _ = load_model(path)
        network = Discriminator(self.num_latents, objective.discriminator_width)
        load_module("discriminator", network, tensors)
        return network.eval()

    @torch.no_grad()
    def _encoded(self, images: ArrayLike, take: Callable[[Latent], Tensor]) -> NDArray[Any]:
        pictures = as_images(images, self.image_shape)
        parts = [take(self.vae.encode(part)) for part in as_tensor(pictures, torch.device("cpu")).split(CHUNK)]
        return torch.cat(parts).numpy()

    def _values(self, codes: NDArray) -> NDArray[np.float32]:
        if not np.issubdtype(codes.dtype, np.integer):
            return codes.astype(np.float32)
        family = self._need_categories()
        if codes.size and not 0 <= codes.min() <= codes.max() < family.outputs_per_latent:
            raise UserError(
                f"categories go from 0 to {family.outputs_per_latent - 1}; give floats for values of latents"
            )
        return family.positions.numpy()[codes]

    def _need_categories(self) -> CategoricalLatent:
        if not isinstance(self.vae.family, CategoricalLatent):
            raise UserError("Gaussian latents have no categories; give values of the latents as floats")
        return self.vae.family


def train(
    dataset: str | Dataset | ArrayLike,
    model: str = "dvae",
    preset: str = "paper",
    out: str | Path | None = None,
    machine: Machine | None = None,
    **settings: Any,
) -> Trained:
    """Train a model on a dataset, a name, a path or an array of images; the run is kept below `out` if given."""
    if isinstance(dataset, str):
        name, loaded = dataset, None
    else:
        loaded = dataset if isinstance(dataset, Dataset) else ArrayDataset(dataset)
        name = loaded.name
        settings["resolution"] = loaded.image_shape[0]  # whatever the preset says, these are the images
    config = configure(model, name, preset, **settings)
    if loaded is None:
        loaded = load_dataset(name, config.resolution)
    if out is not None:
        return Trained.load(run(config, Path(out), machine, loaded))
    with TemporaryDirectory() as folder:
        return Trained.load(run(config, Path(folder), machine, loaded))
