"""What every objective is: a module that adds penalties to the reconstruction of a VAE, in nats per image."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Self

import torch
from torch import Tensor, nn

from lddr.latents.latent import Latent, Posterior
from lddr.vae import Output, in_precision

Number = float | Tensor


@dataclass(frozen=True)
class Loss:
    """The loss of a batch in nats per image, and its terms; `backward` computes the gradients of the VAE.

    Parameters
    ----------
    reconstruction
        -log p(x | z).
    kl
        KL(posterior ‖ prior), without a weight.
    penalties
        Weighted penalties by name.
    reconstruction_weight
        Weight of the reconstruction in the total.
    discriminator
        The discriminator's own loss, which has no gradient for the VAE.
    output
        The output of the VAE that this is the loss of.
    """

    reconstruction: Tensor
    kl: Tensor
    penalties: dict[str, Tensor]
    reconstruction_weight: float = 1.0
    discriminator: Tensor | None = None
    output: Output | None = None

    @cached_property
    def total(self) -> Tensor:
        """Weighted reconstruction + all penalties: ()."""
        weight = self.reconstruction_weight
        weighted = self.reconstruction if weight == 1 else weight * self.reconstruction
        return weighted + reduce(torch.add, self.penalties.values()) if self.penalties else weighted

    @property
    def terms(self) -> dict[str, Tensor]:
        """The total, the ELBO and all terms by name, detached; "kl" is the KL without a weight.

        In training, "reconstruction" is that of samples; the one in a run's scores.json is without noise.
        """
        elbo = -self.reconstruction - self.kl
        terms = {"loss": self.total, "elbo": elbo, "reconstruction": self.reconstruction, "kl": self.kl}
        terms |= {name: value for name, value in self.penalties.items() if name != "kl"}
        return {name: value.detach() for name, value in terms.items()}

    def plus(self, **penalties: Tensor) -> Loss:
        """Return the same loss with more penalties."""
        return replace(self, penalties=self.penalties | penalties)

    def backward(self) -> None:
        """Compute the gradients of the VAE's weights, not those of a discriminator."""
        self.total.backward()

    def item(self) -> float:
        return self.total.item()


class Objective(nn.Module, ABC):
    """Reconstruction + penalties. Call it with the output of a VAE and the images; it returns a `Loss`.

    An objective of your own needs `penalties`.

    Examples
    --------
    >>> import lddr, torch
    >>> latent = lddr.latents.Gaussian(num_latents=2)
    >>> encoder = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, latent.num_parameters))
    >>> decoder = torch.nn.Sequential(torch.nn.Linear(latent.width, 64), torch.nn.Unflatten(1, (1, 8, 8)))
    >>> vae, objective = lddr.VAE(encoder, decoder, latent), lddr.objectives.Beta(beta=4)
    >>> images = torch.rand(5, 1, 8, 8)
    >>> loss = objective(vae(images), images)
    >>> loss.backward()
    >>> sorted(loss.terms)
    ['elbo', 'kl', 'loss', 'reconstruction']
    """

    grid: dict[str, tuple[float, ...]] = {}  # noqa: RUF012 (values of settings in the paper and in Locatello et al.)
    needs_densities = False  # whether it compares posteriors: `Posterior.cross_log_density`
    needs_pairs = False  # whether a batch consists of pairs, image i with image i + batch / 2: see `share`
    random_stream = "objective"  # what a training run draws its random numbers for

    name: str  # in the registry
    pairs: str | None = None  # which pairs: see `lddr.data.pairs.Pairs`

    def __init__(self) -> None:
        super().__init__()
        self.discriminator: nn.Module | None = None
        self.reconstruction_weight = 1.0

    @abstractmethod
    def penalties(self, output: Output, schedule: Number, random: Tensor | None) -> dict[str, Tensor]:
        """Return each weighted penalty, by name, given what `schedule` and `draw` return for the step."""

    def schedule(self, step: int) -> float:
        """Return a number that changes during training."""
        return 0.0

    def draw(self, latent: Latent, batch: int, generator: torch.Generator | None = None) -> Tensor | None:
        """Return the random numbers that the penalties of a batch need, if any."""
        return None

    def share(self, posterior: Posterior) -> Posterior:
        """Return the posteriors that are sampled and decoded: in objectives for pairs, some are one for both images."""
        return posterior

    def attach(self, latent: Latent) -> Self:
        """Build the discriminator for a latent, if there is one, and return the objective."""
        return self

    def forward(
        self,
        output: Output,
        images: Tensor,
        step: int = 0,
        *,
        schedule: Number | None = None,
        random: Tensor | None = None,
    ) -> Loss:
        """Return the loss of a batch.

        Parameters
        ----------
        output
            What the VAE returned for the images.
        images
            (batch, channels, height, width) in [0, 1].
        step
            The training step, for objectives with a schedule.
        schedule, random
            Replace what `schedule(step)` and `draw` return.

        Returns
        -------
        Loss
            The total, its terms, and a discriminator's loss.
        """
        latent = output.vae.latent
        if self.needs_densities and not latent.has_densities:
            kind = type(latent).__name__
            raise ValueError(f"{type(self).__name__} needs densities, which {kind} latents do not have")
        if random is None and (drawn := self.draw(latent, len(images))) is not None:
            random = drawn.to(images.device)
        reconstruction = output.vae.likelihood(output.reconstruction, images)
        schedule = self.schedule(step) if schedule is None else schedule
        penalties, discriminator = self._penalties(output, schedule, random)
        penalties = penalties | latent.losses(output.posterior, output.sample)
        kl, weight = output.posterior.mean_kl, self.reconstruction_weight
        return Loss(reconstruction, kl, penalties, weight, discriminator, output)

    def _penalties(
        self, output: Output, schedule: Number, random: Tensor | None
    ) -> tuple[dict[str, Tensor], Tensor | None]:
        """Return the penalties, and the loss of a discriminator."""
        return self.penalties(output, schedule, random), None


class AdversarialObjective(Objective):
    """An objective with a discriminator, which trains on the same samples by a loss and an optimizer of its own.

    In your own loop, call `attach(latent)`, give `discriminator.parameters()` to a second optimizer, and after
    `loss.backward()` call `loss.discriminator.backward()` as well.

    Examples
    --------
    >>> import lddr, torch
    >>> latent = lddr.latents.Gaussian(num_latents=2)
    >>> encoder = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, latent.num_parameters))
    >>> decoder = torch.nn.Sequential(torch.nn.Linear(latent.width, 64), torch.nn.Unflatten(1, (1, 8, 8)))
    >>> vae, images = lddr.VAE(encoder, decoder, latent), torch.rand(5, 1, 8, 8)
    >>> objective = lddr.objectives.AdversarialCorrelation(gamma=10, discriminator_width=8).attach(latent)
    >>> loss = objective(vae(images), images)
    >>> loss.backward()
    >>> loss.discriminator.backward()
    """

    random_stream = "permutation"
    discriminator_learning_rate: float = 1e-4
    discriminator_betas: tuple[float, float] = (0.5, 0.9)
    discriminator_schedule: str = "constant"  # "model": in proportion to the model's learning rate

    @abstractmethod
    def build_discriminator(self, inputs: int) -> nn.Module:
        """Return a discriminator of so many numbers for each image, with initial weights."""

    @abstractmethod
    def score(self, logits: Tensor) -> Tensor:
        """Return what the model minimises, () from the discriminator's outputs for the samples of a batch."""

    @abstractmethod
    def negatives(self, samples: Tensor, random: Tensor) -> Tensor:
        """Return the samples that the discriminator learns to distinguish from those of the batch, in their shape."""

    @abstractmethod
    def classification_loss(self, logits: Tensor, negative_logits: Tensor) -> Tensor:
        """Return what the discriminator minimises, () from its outputs for samples and negatives."""

    @abstractmethod
    def adversarial_penalties(self, output: Output, score: Tensor) -> dict[str, Tensor]:
        """Return each weighted penalty, by name, given the discriminator's score of the batch."""

    def attach(self, latent: Latent) -> Self:
        self.discriminator = self.build_discriminator(latent.discriminator_width)
        return self

    def penalties(self, output: Output, schedule: Number, random: Tensor | None) -> dict[str, Tensor]:
        """Return the penalties for a discriminator that does not train: the score has the network's gradients."""
        samples = output.vae.latent.discriminator_input(output.sample)
        return self.adversarial_penalties(output, self.score(self._network(output)(samples.flatten(1))))

    def _penalties(
        self, output: Output, schedule: Number, random: Tensor | None
    ) -> tuple[dict[str, Tensor], Tensor | None]:
        assert random is not None
        network, z = self._network(output), output.vae.latent.discriminator_input(output.sample)
        samples = z.detach().requires_grad_()
        logits, negative_logits = _both(network, samples.flatten(1), self.negatives(z.detach(), random).flatten(1))
        score = self.score(logits)
        if z.requires_grad:
            (slope,) = torch.autograd.grad(score, samples, retain_graph=True)
            # the same value, whose gradient reaches z alone
            score = score.detach() + (slope * (z - samples.detach())).sum()
        return self.adversarial_penalties(output, score), self.classification_loss(logits, negative_logits)

    def _network(self, output: Output) -> Callable[[Tensor], Tensor]:
        if self.discriminator is None:
            raise ValueError(f"{type(self).__name__} has no discriminator yet; call attach(latent) before training")
        return in_precision(self.discriminator, output.precision)


def _both(network: Callable[[Tensor], Tensor], samples: Tensor, negatives: Tensor) -> tuple[Tensor, ...]:
    """Return the outputs for both; in one pass where a pass costs the same however many samples there are."""
    if samples.device.type == "cpu":
        return network(samples), network(negatives)
    return network(torch.cat([samples, negatives])).chunk(2)
