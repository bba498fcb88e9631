"""What trained models make of the same images, encoded when first asked for."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lddr.data.dataset import Dataset, Images, stream
from lddr.errors import UserError
from lddr.metrics.information import Floats, Whole
from lddr.runs.index import Run

SAMPLES = 1000
ACTIVE_VARIANCE = 0.01  # of a latent that is in use, as for UDR


@dataclass(frozen=True)
class Encoded:
    """The images that all models of a dataset are shown, as one model encodes them."""

    codes: Floats  # (samples, latents)
    categories: Whole | None = None  # (samples, latents), of a discrete model
    confidence: Floats | None = None  # (latents,): the mean over the images of the largest probability

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which latents are in use: (latents,)."""
        return self.codes.var(axis=0) > ACTIVE_VARIANCE


class RunEncoder:
    """Encodes each run once; gives the reason instead where that cannot be done.

    The images are those of the given dataset if there is one, else of each run's own, loaded by name.
    """

    def __init__(self, samples: int = SAMPLES, device: str = "auto", dataset: Dataset | None = None) -> None:
        self._samples, self._device, self._dataset = samples, device, dataset
        self._known: dict[Path, Encoded | str] = {}

    def __call__(self, run: Run) -> Encoded | str:
        if run.folder not in self._known:
            try:
                self._known[run.folder] = encode(run, self._samples, self._device, self._dataset)
            except UserError as error:
                self._known[run.folder] = f"cannot be encoded: {error}"
        return self._known[run.folder]


def encode(run: Run, samples: int = SAMPLES, device: str = "auto", dataset: Dataset | None = None) -> Encoded:
    """What a run's model makes of images of its dataset, the same for every run of that dataset."""
    from lddr.trained import Trained

    images = _shown(run.files.dataset if dataset is None else dataset, samples)
    model = Trained.load(run.folder).to(device)
    codes = model.represent(images).astype(np.float64)
    if not model.is_discrete:
        return Encoded(codes)
    posterior = model.posterior(images)  # (samples, latents, categories)
    return Encoded(codes, posterior.argmax(axis=2), posterior.max(axis=2).mean(axis=0, dtype=np.float64))


@lru_cache(maxsize=4)
def _shown(dataset: Dataset, samples: int) -> Images:
    return dataset.draw(stream(0, "selection"), samples)
