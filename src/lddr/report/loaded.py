"""A run with its model and its images, for figures that look into them."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from lddr.errors import UserError
from lddr.metrics.metric import UndefinedError
from lddr.runs.index import Run

if TYPE_CHECKING:
    from lddr.data.dataset import Dataset, Images
    from lddr.trained import Trained


@dataclass(frozen=True)
class LoadedRun:
    """A run whose model and images are loaded when they are first asked for, and once."""

    run: Run

    @cached_property
    def model(self) -> "Trained":
        from lddr.trained import Trained

        try:
            return Trained.load(self.run.folder)
        except UserError as error:
            raise UndefinedError(f"the model of {self.run.name} cannot be loaded: {error}") from error

    @cached_property
    def dataset(self) -> "Dataset":
        """The images it was trained on."""
        try:
            return self.run.files.dataset
        except UserError as error:
            raise UndefinedError(f"the images of {self.run.name} are not here: {error}") from error

    def images(self, count: int) -> "Images":
        """The same images for every model of a dataset."""
        from lddr.data.dataset import stream

        return self.dataset.draw(stream(0, "pictures"), count)
