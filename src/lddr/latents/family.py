"""What every latent family is and answers: one return shape, and one class that knows all about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from lddr.lazy import LazyModule
from lddr.registry import Registry
from lddr.settings import Settings, claims, setting

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from lddr.data.factors import FactorSpace, Indices
    from lddr.networks.latent_layer import LatentLayer
else:
    torch = LazyModule("torch")


@dataclass(frozen=True)
class Latent:
    """The latents of a batch: posterior, sample, and how far the posterior is from the prior."""

    z: Tensor  # (batch, latents): the sample, one number per latent, that the decoder sees
    mean: Tensor  # (batch, latents): the representation, which is the posterior's expected value
    spread: Callable[[], Tensor]  # gives the variance; hardly anybody asks, so that nobody works it out before
    kl: Tensor  # (batch, latents): KL(posterior || prior)
    parameters: Tensor  # (batch, latents, …): of the posterior, as its family writes them
    sample: Tensor  # z, or what z is made of: discrete, (batch, latents, values) on the simplex
    unrounded: Tensor | None = None  # (batch, latents): z before it was rounded, from families that round in training

    @cached_property
    def variance(self) -> Tensor:
        """Of the posterior, (batch, latents)."""
        return self.spread()

    @cached_property
    def mean_kl(self) -> Tensor:
        """Summed over latents, mean over the batch: ()."""
        return self.kl.sum(1).mean()


@dataclass(frozen=True)
class LatentFamily(Settings, ABC):
    """A family of posteriors with its prior: its settings, and everything that is known about it.

    Its tensors, constant or learned, live in a `LatentLayer`, which is handed to the methods that need them; the
    encoder gives the parameters of the posterior.
    """

    name: ClassVar[str]  # in the registry
    title: ClassVar[str]  # "Gaussian", say
    is_discrete: ClassVar[bool] = False  # whether a latent has a list of values that it can be rounded to
    supervisions: ClassVar[tuple[str, ...]] = ()  # the losses on labelled images it knows
    masking: ClassVar[tuple[str, ...]] = ()  # those that leave a latent only as many values as its factor has
    has_densities: ClassVar[bool] = True  # whether posteriors can be compared: `cross_log_density`

    @classmethod
    def usual_supervision(cls) -> str | None:
        """The loss to use on labelled images if none is named; None for a family that knows none."""
        return next(iter((*cls.masking, *cls.supervisions)), None)

    num_latents: int = setting(10, "How many latents.", at_least=1)

    @property
    @abstractmethod
    def outputs_per_latent(self) -> int:
        """How many numbers it needs from the encoder for each latent."""

    @property
    @abstractmethod
    def prior_variance(self) -> float:
        """Of one latent under the prior."""

    @property
    def rounds_samples(self) -> bool:
        """Whether the decoder sees rounded values while the model trains."""
        return False

    @property
    def rounds_codes(self) -> bool:
        """Whether the representation is rounded, and what the decoder sees of it at test time."""
        return self.rounds_samples

    @property
    def numbers_shown(self) -> int:
        """How many numbers an adversary sees of the latents of an image."""
        return self.num_latents

    def constants(self) -> dict[str, Tensor]:
        """Tensors that never train."""
        return {}

    def weights(self) -> dict[str, Tensor]:
        """Tensors that train with the networks, as they begin; they never decay."""
        return {}

    def drawn_weights(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Those of its weights that begin by chance, from the generator alone."""
        return {}

    @abstractmethod
    def noise(self, batch: int, generator: torch.Generator) -> Tensor:
        """The noise a sample of this many posteriors is made of, from the generator alone."""

    def noise_scale(self, step: int, steps: int) -> float:
        """How much of the noise is used at this step of the training."""
        return 1.0

    @abstractmethod
    def latent(
        self, layer: LatentLayer, outputs: Tensor, noise: Tensor | None, scale: float | Tensor, hard: bool
    ) -> Latent:
        """From the encoder's outputs (batch, latents, outputs_per_latent) to the latents.

        `hard` rounds z to one of the latent's values, where it has them, and lets gradients pass straight through.
        Without noise, and as hard as `rounds_codes` says, z is the representation.
        """

    def losses(self, layer: LatentLayer, latent: Latent) -> dict[str, Tensor]:
        """Weighted losses of its own, by name, which are added whatever the objective is."""
        return {}

    def shown(self, latent: Latent) -> Tensor:
        """What an adversary sees: (batch, latents), or (batch, latents, …) where a latent is several numbers."""
        return latent.z

    def cross_log_density(self, layer: LatentLayer, latent: Latent) -> Tensor:
        """For every pair of images, log q(z_i of image b | image c): (batch, batch, latents)."""
        raise NotImplementedError(f"{type(self).__name__} says that it has densities, but has none")

    @abstractmethod
    def posterior(self, latent: Latent) -> Tensor:
        """The posterior as users read it, (batch, latents, …); discrete: the probability of every value."""

    @abstractmethod
    def values(self, layer: LatentLayer) -> Tensor:
        """The values a traversal goes through, (latents, values); discrete: all there are."""

    def targets(self, loss: str, factors: Indices, space: FactorSpace) -> Tensor:
        """What the labels of images ask of the latents by one of the `supervisions`: (images, factors)."""
        raise NotImplementedError(f"{type(self).__name__} names supervisions but has no targets")

    def errors(self, loss: str, latent: Latent, targets: Tensor) -> Tensor:
        """The loss of every label by one of the `supervisions`: (images, factors)."""
        raise NotImplementedError(f"{type(self).__name__} names supervisions but has no errors")

    def risk(self, loss: str, latent: Latent, targets: Tensor, known: Tensor | None = None) -> Tensor:
        """R_s of labelled images: the errors of the known labels, summed over factors, mean over images."""
        errors = self.errors(loss, latent, targets)
        return (errors if known is None else errors.where(known, 0.0)).sum(1).mean()

    def guess(self, loss: str, seen: Tensor, unseen: Tensor) -> Tensor:
        """The errors (m,) for targets `unseen` (m,) of the constant prediction that is best for `seen` (n,)."""
        raise NotImplementedError(f"{type(self).__name__} names supervisions but has no guess")


def _admit(name: str, family: type[LatentFamily]) -> None:
    family.name = name
    claims.claim("latent", family)


latents: Registry[type[LatentFamily]] = Registry("latent", homes=("lddr.latents",), admit=_admit)
