"""Supervision by a few labels: latent i is tied to factor i (paper, appendix "Semi-supervised training")."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from lddr.errors import UserError
from lddr.settings import Settings, setting

if TYPE_CHECKING:
    from torch import Tensor

    from lddr.data.dataset import Dataset
    from lddr.data.factors import Indices
    from lddr.latents.latent import Latent
    from lddr.parts import Choice


@dataclass(frozen=True)
class Supervision(Settings):
    """The loss R_s of the latents on labelled images, how many of these there are, and its weight ω."""

    loss: str = ""
    labels: int = setting(
        100,
        "Number of labelled images, some of which validate. Where only some images are labelled, the default is all "
        "of those.",
        at_least=2,
    )
    omega: float = setting(1.0, "Weight of the supervision.", at_least=0)
    risk_of: str = setting(
        "batch",
        "What the weight multiplies: the sum over the labelled batch, as in disentanglement_lib, or the loss of one "
        "labelled image, as in the paper's equation, with which small weights have almost no effect.",
        choices=("batch", "image"),
    )
    label_seed: int = setting(0, "Seed of the choice of labelled images.", at_least=0)
    validation_share: float = setting(
        0.1, "Share of the labelled images that validate instead of training.", at_least=0, at_most=0.9
    )
    free_penalty: float = setting(
        0.0,
        "Weight of a penalty on latents without a factor that repeat those with one: the sum of their squared "
        "correlations over the batch (0 turns it off).",
        at_least=0,
    )

    def check(self, latent: Choice) -> None:
        """Raise an error if the latent does not have this loss."""
        if self.loss not in latent.supervisions:
            known = ", ".join(latent.supervisions)
            remedy = f"choose one of: {known}" if known else "leave supervision out"
            raise UserError(f"supervision {self.loss!r} is not for {latent.name} latents; {remedy}")

    def check_dataset(self, latent: Choice, dataset: Dataset) -> None:
        """Raise an error if there are more factors than latents, no factors, or fewer labelled images than labels."""
        factors = len(dataset.space.factors)
        if not factors:
            raise UserError(f"{dataset.name} has no factors to supervise with; give factors, or leave supervision out")
        if factors > latent.num_latents:
            latents = f"the {latent.num_latents} latents to tie them to"
            raise UserError(f"{dataset.name} has {factors} factors, more than {latents}; raise num_latents")
        count = dataset.space.num_labelled
        if self.labels > count:
            images = "images" if dataset.space.is_complete else "labelled images"
            raise UserError(f"{self.labels} labels are more than the {count} {images} of {dataset.name}; lower labels")

    def split(self, dataset: Dataset) -> tuple[Indices, Indices]:
        """Return the labelled images, drawn once by their own seed: training and validation.

        From images that are all labelled they are drawn with replacement, unless all are wanted.
        """
        from lddr.data.dataset import stream

        space, generator = dataset.space, stream(self.label_seed, "labels")
        if space.is_complete and self.labels < space.size:
            drawn = space.sample(generator, self.labels)
        else:
            drawn = generator.permutation(space.labelled())[: self.labels]
        train = ceil((1 - self.validation_share) * self.labels)
        return drawn[:train], drawn[train:]

    def guessing(self, latent: Latent, dataset: Dataset) -> dict[str, float]:
        """Return the validation risk of a constant guess for each factor; nothing without labels to validate with.

        The guess is the best one for the labels that train and one more of every value, as any may come up.
        """
        import numpy as np

        from lddr.data.factors import UNKNOWN

        space = dataset.space
        train, validation = (space.factors_of(images) for images in self.split(dataset))

        def targets(rows: Indices, factor: int) -> Tensor:
            return latent.targets(self.loss, np.maximum(rows, 0), space)[:, factor]  # of what is known, others are -1

        risk = 0.0
        for factor, size in enumerate(space.sizes):
            every = np.minimum(np.arange(size)[:, np.newaxis], np.array(space.sizes) - 1)
            seen = np.concatenate([train[train[:, factor] != UNKNOWN], every])
            unseen = validation[validation[:, factor] != UNKNOWN]
            errors = latent.guess(self.loss, targets(seen, factor), targets(unseen, factor))
            risk += float(errors.sum()) / max(len(validation), 1)
        return {"validation_risk_guessing": risk} if len(validation) else {}

    def weight(self, batch_size: int) -> float:
        """Return the factor of the risk of one image, mean over the labelled batch."""
        return self.omega * (batch_size if self.risk_of == "batch" else 1)
