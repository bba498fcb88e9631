"""The models that the page opens: images to codes, codes to pictures."""

import base64
import os
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from lddr.data.dataset import Dataset, datasets, stream
from lddr.data.factors import UNKNOWN
from lddr.data.in_memory import as_images
from lddr.data.pictures import pictures_among
from lddr.data.samples import Samples
from lddr.errors import UserError
from lddr.explorer.runs import GoneError, known_information
from lddr.latents.latent import Posterior
from lddr.report.traversals import evenly_spaced, most_changed
from lddr.runs.folder import RunFolder
from lddr.runs.information import Information
from lddr.trained import Trained
from lddr.training.batches import as_tensor

MOST_MODELS = 8  # cached in memory
KL_IMAGES = 64  # images over which the KL of each latent is averaged
START_IMAGES = 16  # images among which the first one to show is chosen
INACTIVE_KL = 0.05  # nats: a latent with a smaller KL is inactive
LARGEST_CODE = 100.0  # values of latents beyond this are a mistake
MOST_LABELS = 1000  # values of a factor that get a label
LINES = 14  # lines of a latent space in each direction

Pixels = NDArray[np.uint8]  # (height, width, channels)


def open_model(folder: Path, device: str = "auto") -> "OpenModel":
    """Return the model of a folder, on a device; it is reloaded if its file has changed."""
    try:
        facts = RunFolder(folder).model_file.stat()
    except OSError as error:
        if not RunFolder(folder).is_run:
            raise GoneError from error
        raise UserError("this run has no model yet: it is training or was stopped; see its metrics") from error
    return _load(folder, device, (facts.st_ino, facts.st_mtime_ns, facts.st_size))


@lru_cache(MOST_MODELS)
def _load(folder: Path, device: str, stamp: tuple[int, ...]) -> "OpenModel":
    trained = Trained.load(folder).to(device)
    dataset, problem = _images_for(trained, RunFolder(folder))
    if dataset is None:
        return OpenModel(trained, None, problem)
    chosen = dataset.space.sample(stream(0, "explorer"), KL_IMAGES)
    images = dataset.images(chosen)
    posterior = _posterior(trained, images)
    kl, varies = (
        posterior.kl.mean(0),
        (posterior.mean != posterior.mean[0]).any(0),
    )  # the KL of quantised latents is fixed
    active = ((kl >= INACTIVE_KL) & varies).tolist()
    start = most_changed(trained, np.flatnonzero(active).tolist(), images[:START_IMAGES])
    return OpenModel(trained, dataset, None, kl.tolist(), active, int(chosen[start]))


def _images_for(trained: Trained, run: RunFolder) -> tuple[Dataset | None, str | None]:
    """Return the images of a run, or the samples that its model was shared with, or why there are none."""
    try:
        dataset = images_of(run)
        if dataset.image_shape != trained.image_shape:
            raise UserError(f"the model takes images {trained.image_shape}, these are {dataset.image_shape}")
        return dataset, None
    except (UserError, OSError, ValueError, TypeError, RuntimeError) as error:
        problem = str(error)
    try:
        samples = trained.samples
    except UserError as error:
        return None, str(error)
    return (Samples(samples), None) if len(samples) else (None, problem)


def images_of(run: RunFolder) -> Dataset:
    """Return the images of a run, unless their place now holds more pictures than the run saw."""
    name, count = run.dataset_place, run.images.get("images")
    path = Path(name).expanduser()
    if name not in datasets and path.is_dir():
        seen = count if type(count) is int else 0
        most = 10 * seen + 10_000  # the folder may contain other files than the pictures
        found = list(islice((file for _, folders, files in os.walk(path) for file in (*folders, *files)), most + 1))
        pictures = pictures_among(map(Path, found), is_legacy=run.config.fit is None)
        if len(found) > most or len(pictures) > seen:
            raise UserError(f"{path} holds more than the {seen:,} images of this run; restore the folder as it was")
    return run.dataset


@dataclass(frozen=True)
class OpenModel:
    """A model, its images or the reason why they are missing and, if there are images, statistics of every latent."""

    trained: Trained
    dataset: Dataset | None
    problem: str | None
    kl: list[float] | None = None  # mean over some of the images
    active: list[bool] | None = None
    start: int | None = None  # the image that changes most when its latents are traversed

    def description(self) -> dict[str, Any]:
        """Return everything the page needs to draw the controls; the most informative latents come first."""
        assert self.trained.folder is not None
        known, unnamed = known_information(self.trained.folder)
        if known is not None and len(known.matrix) != self.trained.num_latents:
            known = None
        latents = [self._about(number, known) for number in range(self.trained.num_latents)]
        latents.sort(key=lambda latent: (not latent["active"], -(latent["share"] or 0), -(latent["kl"] or 0)))
        about = {"latents": latents, "problem": self.problem, "unnamed": unnamed, "start": self.start}
        return about | {"dataset": _about_dataset(self.dataset) if self.dataset else None}

    def encode(self, choice: dict[str, Any]) -> dict[str, Any]:
        """Encode an image of the dataset, chosen by its index or by the values of its factors."""
        dataset = self._images()
        index = choice.get("index")
        if "factors" in choice:
            values = choice["factors"]
            if not isinstance(values, list) or not all(type(value) is int and abs(value) < 2**60 for value in values):
                raise UserError("give a whole number for each factor")
            index = int(dataset.space.indices_of(np.array(values, np.int64)))
        if type(index) is not int or not 0 <= index < len(dataset):
            raise UserError(f"give the number of an image, from 0 to {len(dataset) - 1}")
        factors = [None if value == UNKNOWN else value for value in dataset.space.factors_of(index).tolist()]
        return {"index": index, "factors": factors} | self._encoded(dataset.images([index])[0])

    def encode_picture(self, picture: Pixels) -> dict[str, Any]:
        """Encode an uploaded picture."""
        return {"index": None, "factors": None} | self._encoded(picture)

    def decode(self, values: Any) -> Pixels:
        """Decode one value per latent into a picture."""
        return _as_pixels(self.trained.decode(self._checked(values)[np.newaxis]))[0]

    def traverse(self, values: Any, latent: Any, count: Any = None) -> Pixels:
        """Return the pictures for all values of one latent, or `count` of them, side by side, the others fixed."""
        code = self._checked(values)
        if type(latent) is not int or not (count is None or (type(count) is int and 2 <= count <= 100)):
            raise UserError("give the number of a latent, and from 2 to 100 pictures")
        moved = self.trained.values_of(latent)
        if count is not None:
            moved = moved[evenly_spaced(len(moved), count)]
        codes = np.repeat(code[np.newaxis], len(moved), axis=0)
        codes[:, latent] = moved
        return _side_by_side(_as_pixels(self.trained.decode(codes)))

    def reconstructions(self, count: int = 10) -> Pixels:
        """Return some images, always the same, with their reconstructions below."""
        dataset = self._images()
        originals = dataset.images(dataset.space.sample(stream(1, "explorer"), count))
        return np.concatenate(
            [_side_by_side(originals), _side_by_side(_as_pixels(self.trained.reconstruct(originals)))]
        )

    def latent_space(self) -> dict[str, Any]:
        """Return the codes of a grid of the two largest factors for a model with two latents: (lines, lines, 2)."""
        space = self._images().space
        if self.trained.num_latents != 2 or len(space.factors) < 2:
            raise UserError("a latent space is drawn for models with two latents and two factors or more")
        pair = sorted(np.argsort(space.sizes, kind="stable")[-2:].tolist())
        lines = [evenly_spaced(space.sizes[factor], LINES) for factor in pair]
        wanted = np.zeros((len(lines[0]), len(lines[1]), len(space.factors)), np.int64)
        wanted[..., pair[0]], wanted[..., pair[1]] = np.meshgrid(*lines, indexing="ij")
        indices = space.indices_of(wanted)
        codes = self.trained.represent(self._images().images(indices.ravel())).reshape(*indices.shape, 2)
        return {"factors": [space.names[factor] for factor in pair], "codes": codes.astype(float).round(4).tolist()}

    def _images(self) -> Dataset:
        if self.dataset is None:
            raise UserError(f"the images of this run are not here: {self.problem}")
        return self.dataset

    def _encoded(self, picture: Pixels) -> dict[str, Any]:
        """Return the reconstruction, and every latent's posterior over its active categories."""
        posterior = _posterior(self.trained, picture[np.newaxis])
        if not posterior.mean.isfinite().all():
            raise UserError("this model encodes images as NaN or infinity: its training has diverged")
        values = posterior.mean[0].tolist()
        answer: dict[str, Any] = {
            "picture": _data_url(picture),
            "reconstruction": _data_url(self.decode(values)),
            "values": values,
            "deviations": posterior.variance[0].sqrt().tolist(),
            "kl": posterior.kl[0].tolist(),
        }
        if self.trained.is_discrete:
            rows = zip(posterior.parameters[0], self.trained.vae.latent.active, strict=True)
            answer["probabilities"] = [row[active].tolist() for row, active in rows]
        return answer

    def _about(self, number: int, known: Information | None) -> dict[str, Any]:
        latent, kl = self.trained.vae.latent, self.kl and self.kl[number]
        factor, share = (known and known.label(number)) or (None, None)
        about: dict[str, Any] = {"number": number, "kl": kl, "active": self.active is None or self.active[number]}
        about |= {"factor": factor, "share": share, "values": self.trained.values_of(number).tolist()}
        about["shares"] = dict(zip(known.factors, known.shares[number].tolist(), strict=True)) if known else {}
        if not self.trained.is_discrete:
            return about | {"range": list(latent.code_range), "deviation": latent.prior_variance**0.5}
        active = latent.active[number]
        return about | {"categories": active.nonzero().flatten().tolist(), "of": len(active)}

    def _checked(self, values: Any) -> NDArray[np.float32]:
        count, given = self.trained.num_latents, values if isinstance(values, list) else []
        if len(given) != count or not all(type(each) in (int, float) and abs(each) <= LARGEST_CODE for each in given):
            raise UserError(f"give {count} numbers between -{LARGEST_CODE:g} and {LARGEST_CODE:g}, one for each latent")
        return np.array(given, np.float32)


def _about_dataset(dataset: Dataset) -> dict[str, Any]:
    factors = [
        {
            "name": factor.name,
            "size": factor.size,
            "labels": [factor.label(value) for value in range(min(factor.size, MOST_LABELS))],
        }
        for factor in dataset.space.factors
    ]
    are_samples = isinstance(dataset, Samples)
    return {"name": dataset.name, "size": len(dataset), "factors": factors, "are_samples": are_samples}


@torch.no_grad()
def _posterior(trained: Trained, images: NDArray[np.uint8]) -> Posterior:
    return trained.vae.encode(as_tensor(as_images(images, trained.image_shape), trained.device))


def _as_pixels(images: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Return images in [0, 1] as 0 … 255."""
    return np.rint(255 * np.clip(images, 0, 1)).astype(np.uint8)


def _side_by_side(pictures: NDArray[np.uint8]) -> Pixels:
    """(count, height, width, channels) → (height, count * width, channels)."""
    return np.concatenate(list(pictures), axis=1)


def png(picture: Pixels) -> bytes:
    """Return the bytes of a PNG file, compressed fast rather than small."""
    plain = picture[:, :, 0] if picture.shape[2] == 1 else picture
    buffer = BytesIO()
    Image.fromarray(np.ascontiguousarray(plain)).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def _data_url(picture: Pixels) -> str:
    return "data:image/png;base64," + base64.b64encode(png(picture)).decode()
