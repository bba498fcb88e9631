"""What a metric is: settings, the images it draws, and a result from the codes and factors of those images."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from lddr.data.factors import FactorSpace, Indices
from lddr.errors import UserError
from lddr.metrics.information import Floats, Whole
from lddr.registry import Registry

if TYPE_CHECKING:
    from lddr.data.dataset import Dataset
    from lddr.trained import Trained

Draws = dict[str, Indices]  # part → image numbers, of any shape


class UndefinedError(UserError):
    """A metric has no value here; the sentence says why."""


@dataclass(frozen=True)
class Result:
    """The headline number, and the settings behind it; a metric adds what else it found out."""

    score: float
    settings: dict[str, Any] = field(kw_only=True)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file; matrices as lists of rows."""
        return {entry.name: _plain(getattr(self, entry.name)) for entry in fields(self)}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


@dataclass(frozen=True)
class Sample:
    """Drawn images by number: their codes and factors are looked up when asked for, so that a part costs a part."""

    indices: Indices  # (…)
    table: "CodeTable"

    def __getitem__(self, part: Any) -> "Sample":
        return Sample(self.indices[part], self.table)

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def codes(self) -> Floats:
        """(…, latents)."""
        return self.table.codes_of(self.indices)

    @property
    def factors(self) -> Whole:
        """(…, factors)."""
        return self.table.factors_of(self.indices)


class CodeTable(ABC):
    """The codes and factors of images, by image number."""

    @abstractmethod
    def codes_of(self, indices: Indices) -> Floats:
        """(…) → (…, latents)."""

    @abstractmethod
    def factors_of(self, indices: Indices) -> Whole:
        """(…) → (…, factors)."""


@dataclass(frozen=True)
class Metric(ABC):
    """A metric with its settings, the published ones by default.

    `needs` says what it is worked out from: "codes" of plain samples, so that arrays from anywhere will do;
    "interventions", images drawn with one factor held, for which the dataset is needed; or the "model" itself.
    """

    title: ClassVar[str]
    needs: ClassVar[Literal["codes", "interventions", "model"]] = "codes"
    labels: ClassVar[bool] = True  # whether ground-truth factors are needed

    @property
    def parts(self) -> dict[str, int]:
        """How many images each plain sample of this metric has; needed by "codes" metrics only."""
        raise NotImplementedError

    def draw(self, space: FactorSpace, generator: np.random.Generator) -> Draws:
        """The images this metric looks at, as numbers; nothing is encoded yet."""
        return {part: space.sample(generator, count) for part, count in self.parts.items()}

    @abstractmethod
    def score(self, samples: Mapping[str, Sample]) -> Result:
        """The result, from the samples that were drawn."""


@dataclass(frozen=True)
class ModelMetric(Metric):
    """A metric of a trained model rather than of its codes."""

    needs = "model"
    labels = False

    def draw(self, space: FactorSpace, generator: np.random.Generator) -> Draws:
        return {}

    def score(self, samples: Mapping[str, Sample]) -> Result:
        raise UndefinedError(f"{self.title} needs the model itself: use lddr evaluate RUN")

    @abstractmethod
    def score_model(self, trained: "Trained", dataset: "Dataset", seed: int) -> Result:
        """The result, from the model and images it draws itself."""


metrics: Registry[type[Metric]] = Registry("metric", homes=("lddr.metrics",))
