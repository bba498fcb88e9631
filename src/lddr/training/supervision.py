"""Supervision by a few labels: latent i is tied to factor i (paper, appendix "Semi-supervised training")."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from lddr.errors import UserError
from lddr.settings import Settings, claims, setting

if TYPE_CHECKING:
    from lddr.data.dataset import Dataset
    from lddr.data.factors import Indices
    from lddr.latents.family import LatentFamily


@dataclass(frozen=True)
class Supervision(Settings):
    """Which loss R_s of the latent family on the labelled images, how many of them, and its weight ω."""

    loss: str = ""
    labels: int = setting(100, "How many labelled images; a share of them validates.", at_least=2)
    omega: float = setting(1.0, "Weight of the supervision.", at_least=0)
    risk_of: str = setting(
        "batch",
        "What the weight multiplies: the sum over the labelled batch, as in disentanglement_lib, or the loss of one "
        "labelled image, as in the paper's equation, with which small weights are hardly heeded.",
        choices=("batch", "image"),
    )
    label_seed: int = setting(0, "Decides which images are labelled.", at_least=0)
    validation_share: float = setting(0.1, "Share of the labelled images that do not train.", at_least=0, at_most=0.9)

    def check(self, family: LatentFamily) -> None:
        """Refuse a loss that the latent family does not know."""
        if self.loss not in family.supervisions:
            known = ", ".join(family.supervisions)
            remedy = f"choose one of: {known}" if known else "leave supervision out"
            raise UserError(f"supervision {self.loss!r} is not for {family.name} latents; {remedy}")

    def check_dataset(self, family: LatentFamily, dataset: Dataset) -> None:
        """Refuse what cannot be: more factors than latents, no factors at all, more labels than images."""
        factors = len(dataset.space.factors)
        if not factors:
            raise UserError(f"{dataset.name} has no factors to supervise with; give factors, or leave supervision out")
        if factors > family.num_latents:
            latents = f"the {family.num_latents} latents to tie them to"
            raise UserError(f"{dataset.name} has {factors} factors, more than {latents}; raise num_latents")
        if self.labels > len(dataset):
            raise UserError(f"{self.labels} labels are more than the {len(dataset)} images of {dataset.name}")

    def split(self, dataset: Dataset) -> tuple[Indices, Indices]:
        """The labelled images, drawn once by their own seed: training and validation."""
        from lddr.data.dataset import stream

        drawn = dataset.space.sample(stream(self.label_seed, "labels"), self.labels)
        train = ceil((1 - self.validation_share) * self.labels)
        return drawn[:train], drawn[train:]

    def weight(self, batch_size: int) -> float:
        """What the risk of one image, mean over the labelled batch, is multiplied with."""
        return self.omega * (batch_size if self.risk_of == "batch" else 1)


claims.claim("supervision", Supervision)
