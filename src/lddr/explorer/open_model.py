"""An open model, and the methods that the page calls."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lddr.data.dataset import Dataset, stream
from lddr.data.factors import UNKNOWN
from lddr.data.in_memory import as_images
from lddr.errors import UserError
from lddr.explorer.pictures import Pixels, as_bytes, data_url, strip
from lddr.explorer.scores import Information
from lddr.latents.latent import Posterior
from lddr.trained import Trained
from lddr.training.batches import as_tensor

ASLEEP = 0.05  # nats: a latent with a smaller KL is inactive
FARTHEST = 100.0  # values of latents beyond this are a mistake
MOST_LABELS = 1000  # values of a factor that get a label
LINES = 14  # lines of a latent space in each direction


@dataclass(frozen=True)
class OpenModel:
    """A model, its images or the reason why they are missing and, if there are images, statistics of every latent."""

    trained: Trained
    dataset: Dataset | None
    problem: str | None
    kl: list[float] | None  # mean over some of the images
    moves: list[bool] | None = None  # whether the latent's code varies over these images

    def description(self, known: Information | None) -> dict[str, Any]:
        """Return everything the page needs to draw the controls; the most informative latents come first."""
        if known is not None and len(known.matrix) != self.trained.num_latents:
            known = None
        latents = [self._about(number, known) for number in range(self.trained.num_latents)]
        latents.sort(key=lambda latent: (not latent["awake"], -(latent["share"] or 0), -(latent["kl"] or 0)))
        about = {"latents": latents, "problem": self.problem}
        return about | {"dataset": _about_dataset(self.dataset) if self.dataset else None}

    def of_dataset(self, choice: dict[str, Any]) -> dict[str, Any]:
        """Encode an image given by its number or by the values of its factors."""
        dataset = self._images()
        number = self._number(dataset, choice)
        values = [None if value == UNKNOWN else value for value in dataset.space.factors_of(number).tolist()]
        about = {"index": number, "factors": values}
        return about | self._seen(dataset.images([number])[0])

    def sent(self, picture: Pixels) -> dict[str, Any]:
        """Encode an uploaded picture."""
        return {"index": None, "factors": None} | self._seen(picture)

    def decoded(self, values: Any) -> Pixels:
        """Decode one value per latent into a picture."""
        return as_bytes(self.trained.decode(self._checked(values)[np.newaxis]))[0]

    def traversal(self, values: Any, latent: Any, count: Any = None) -> Pixels:
        """Return the pictures for all values of one latent, or `count` of them, side by side, the others fixed."""
        code = self._checked(values)
        if type(latent) is not int or not (count is None or (type(count) is int and 2 <= count <= 100)):
            raise UserError("give the number of a latent, and from 2 to 100 pictures")
        places = self.trained.values_of(latent)
        if count is not None:
            places = places[np.linspace(0, len(places) - 1, min(count, len(places))).round().astype(int)]
        codes = np.repeat(code[np.newaxis], len(places), axis=0)
        codes[:, latent] = places
        return strip(as_bytes(self.trained.decode(codes)))

    def reconstructions(self, count: int = 10) -> Pixels:
        """Return some images, always the same, with their reconstructions below."""
        dataset = self._images()
        originals = dataset.images(dataset.space.sample(stream(1, "explorer"), count))
        return np.concatenate([strip(originals), strip(as_bytes(self.trained.reconstruct(originals)))])

    def latent_space(self) -> dict[str, Any]:
        """Return the codes of a grid of the two largest factors for a model with two latents: (lines, lines, 2)."""
        space = self._images().space
        if self.trained.num_latents != 2 or len(space.factors) < 2:
            raise UserError("a latent space is drawn for models with two latents and two factors or more")
        pair = sorted(np.argsort(space.sizes, kind="stable")[-2:].tolist())
        lines = [np.unique(np.linspace(0, space.sizes[factor] - 1, LINES).round().astype(np.int64)) for factor in pair]
        wanted = np.zeros((len(lines[0]), len(lines[1]), len(space.factors)), np.int64)
        wanted[..., pair[0]], wanted[..., pair[1]] = np.meshgrid(*lines, indexing="ij")
        numbers = space.indices_of(wanted)
        codes = self.trained.represent(self._images().images(numbers.ravel())).reshape(*numbers.shape, 2)
        return {"factors": [space.names[factor] for factor in pair], "codes": codes.astype(float).round(4).tolist()}

    def _images(self) -> Dataset:
        if self.dataset is None:
            raise UserError(f"the images of this run are not here: {self.problem}")
        return self.dataset

    def _number(self, dataset: Dataset, choice: dict[str, Any]) -> int:
        if "factors" in choice:
            values = choice["factors"]
            if not isinstance(values, list) or not all(type(value) is int and abs(value) < 2**60 for value in values):
                raise UserError("give a whole number for each factor")
            return int(dataset.space.indices_of(np.array(values, np.int64)))
        number = choice.get("index")
        if type(number) is not int or not 0 <= number < len(dataset):
            raise UserError(f"give the number of an image, from 0 to {len(dataset) - 1}")
        return number

    def _seen(self, picture: Pixels) -> dict[str, Any]:
        """Return the reconstruction, and every latent's posterior over its active categories."""
        posterior = posterior_of(self.trained, picture[np.newaxis])
        if not posterior.mean.isfinite().all():
            raise UserError("this model gives no numbers: its training has diverged")
        values = posterior.mean[0].tolist()
        answer: dict[str, Any] = {
            "picture": data_url(picture),
            "reconstruction": data_url(self.decoded(values)),
            "values": values,
            "deviations": posterior.variance[0].sqrt().tolist(),
            "kl": posterior.kl[0].tolist(),
        }
        if self.trained.is_discrete:
            rows = zip(posterior.parameters[0], self.trained.vae.latent.active, strict=True)
            answer["probabilities"] = [row[active].tolist() for row, active in rows]
        return answer

    def _about(self, number: int, known: Information | None) -> dict[str, Any]:
        kl = None if self.kl is None else self.kl[number]
        factor, share = (known and known.label(number)) or (None, None)
        awake = kl is None or (kl >= ASLEEP and (self.moves is None or self.moves[number]))
        about: dict[str, Any] = {"number": number, "kl": kl, "awake": awake}
        about |= {"factor": factor, "share": share, "values": self.trained.values_of(number).tolist()}
        about["shares"] = dict(zip(known.factors, known.shares[number].tolist(), strict=True)) if known else {}
        if not self.trained.is_discrete:
            latent = self.trained.vae.latent
            return about | {"range": list(latent.code_range), "deviation": latent.prior_variance**0.5}
        active = self.trained.vae.latent.active[number]
        return about | {"categories": active.nonzero().flatten().tolist(), "of": len(active)}

    def _checked(self, values: Any) -> NDArray[np.float32]:
        count, given = self.trained.num_latents, values if isinstance(values, list) else []
        if len(given) != count or not all(type(value) in (int, float) and abs(value) <= FARTHEST for value in given):
            raise UserError(f"give {count} numbers between -{FARTHEST:g} and {FARTHEST:g}, one for each latent")
        return np.array(given, np.float32)


def _about_dataset(dataset: Dataset) -> dict[str, Any]:
    def labels(number: int) -> list[str]:
        factor = dataset.space.factors[number]
        return [factor.label(value) for value in range(min(factor.size, MOST_LABELS))]

    factors = [
        {"name": factor.name, "size": factor.size, "labels": labels(number)}
        for number, factor in enumerate(dataset.space.factors)
    ]
    return {"name": dataset.name, "size": len(dataset), "factors": factors}


@torch.no_grad()
def posterior_of(trained: Trained, images: NDArray[np.uint8]) -> Posterior:
    return trained.vae.encode(as_tensor(as_images(images, trained.image_shape), trained.device))
