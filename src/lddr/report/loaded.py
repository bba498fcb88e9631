"""A run with its model and its images, for figures that look into them."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from lddr.errors import UserError
from lddr.runs.index import Run

if TYPE_CHECKING:
    from lddr.data.dataset import Dataset, Images
    from lddr.trained import Trained


@dataclass(frozen=True)
class LoadedRun:
    """A run whose model and images are loaded when they are first asked for, and once."""

    run: Run
    given: "Dataset | None" = None  # images that are only in memory

    @cached_property
    def model(self) -> "Trained":
        from lddr.trained import Trained

        model = Trained.load(self.run.folder)
        if not all(weights.isfinite().all() for weights in model.vae.parameters()):
            raise UserError(f"the model of {self.run.name} gives no numbers: its training has diverged; train it again")
        return model

    @cached_property
    def dataset(self) -> "Dataset":
        """The images it was trained on."""
        return self.run.files.dataset if self.given is None else self.given

    def images(self, count: int) -> "Images":
        """The same images for every model of a dataset."""
        from lddr.data.dataset import stream

        return self.dataset.draw(stream(0, "pictures"), count)
