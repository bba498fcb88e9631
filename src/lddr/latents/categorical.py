"""Categorical latents: Gumbel-softmax variables over ordered categories, each a position on a line (paper §2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lddr import terms
from lddr.errors import UserError
from lddr.latents.family import latents
from lddr.latents.tabular import Tabular
from lddr.schedules import cosine
from lddr.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from lddr.networks.latent_layer import LatentLayer


@latents.register("categorical")
@dataclass(frozen=True)
class Categorical(Tabular):
    """The encoder gives log α of every category, which are at equidistant positions.

    The noise is multiplied by a scale that follows a cosine from `noise_start` at step 0 to `noise_end` at step
    `steps`, just after the last one, as in the authors' code. Positions that are learned are read in order, so that
    category j is always the j-th from below; `prior_variance` is that of the positions as they begin.
    """

    title = "categorical"

    low: float = setting(-1.0, "Position of the first category.")
    high: float = setting(1.0, "Position of the last category.")
    noise_start: float = setting(0.5, "Scale of the Gumbel noise at the first step.", at_least=0)
    noise_end: float = setting(2.0, "Scale of the Gumbel noise at the end of the training.", at_least=0)
    hard: bool = setting(False, "Round samples to one category, with the gradient of those that are not rounded.")
    learn_positions: bool = setting(False, "Let the positions, the same for all latents, train with the networks.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low >= self.high:
            raise UserError(f"low must be less than high, not {self.low:g} and {self.high:g}")

    @property
    def outputs_per_latent(self) -> int:
        return self.num_categories

    @property
    def prior_variance(self) -> float:
        return terms.positions_variance(self.low, self.high, self.num_categories)

    @property
    def rounds_samples(self) -> bool:
        return self.hard

    def constants(self) -> dict[str, Tensor]:
        return {} if self.learn_positions else self._positions()

    def weights(self) -> dict[str, Tensor]:
        return self._positions() if self.learn_positions else {}

    def _positions(self) -> dict[str, Tensor]:
        return {"positions": terms.positions(self.low, self.high, self.num_categories)}

    def noise_scale(self, step: int, steps: int) -> float:
        return cosine(self.noise_start, self.noise_end, step, steps)

    def places(self, layer: LatentLayer) -> Tensor:
        return layer.positions.sort().values if self.learn_positions else layer.positions

    def logits(self, layer: LatentLayer, outputs: Tensor) -> Tensor:
        return outputs
