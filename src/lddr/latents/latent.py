"""What every latent is: a module from encoder outputs to a posterior, with a prior, noise and a list of values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import torch
from torch import Tensor, nn

from lddr.data.factors import FactorSpace, Indices
from lddr.settings import Setting

Scale = float | Tensor  # of the noise
NumLatents = Annotated[int, Setting("How many latents.", at_least=1)]
NumCategories = Annotated[int, Setting("How many categories a latent has.", at_least=2)]


@dataclass(frozen=True)
class Sample:
    """A sample of a batch's posteriors.

    Parameters
    ----------
    z
        The input of the decoder, (batch, width).
    weights
        The one-hot or relaxed choice that z is made of, (batch, latents, values); None for continuous latents.
    unrounded
        z before quantisation, (batch, latents), where latents are quantised in training.
    """

    z: Tensor
    weights: Tensor | None = None
    unrounded: Tensor | None = None


class Posterior(ABC):
    """q(z | x) for a batch of images, which a `Latent` computes from the outputs of an encoder.

    Attributes
    ----------
    mean
        The codes that represent the images, (batch, latents).
    variance
        (batch, latents).
    kl
        KL(posterior ‖ prior) in nats, (batch, latents).
    parameters
        (batch, latents, …): of a discrete latent, the probability of every value.

    Examples
    --------
    >>> import lddr, torch
    >>> posterior = lddr.latents.Gaussian(num_latents=2)(torch.zeros(5, 4))
    >>> posterior.mean.shape, posterior.sample().z.shape, posterior.mean_kl.item()
    (torch.Size([5, 2]), torch.Size([5, 2]), 0.0)
    """

    mean: Tensor
    variance: Tensor
    kl: Tensor
    parameters: Tensor

    @abstractmethod
    def sample(self, noise: Tensor | None = None, scale: Scale = 1.0, hard: bool | None = None) -> Sample:
        """Return a differentiable sample.

        Parameters
        ----------
        noise
            From `Latent.noise`; by default it is drawn from torch's global generator.
        scale
            Multiplies the noise.
        hard
            Quantise to one of a discrete latent's values, with the gradient of the sample before quantisation; None
            does what the latent does in training.

        Returns
        -------
        Sample
            Its `z` is the decoder's input.
        """

    @abstractmethod
    def expected(self, hard: bool | None = None) -> Sample:
        """Return what the decoder gets at test time, without noise; `hard` overrides whether it is quantised."""

    def rsample(self, noise: Tensor | None = None, scale: Scale = 1.0, hard: bool | None = None) -> Tensor:
        """Return the decoder's input of a `sample`: (batch, width)."""
        return self.sample(noise, scale, hard).z

    def cross_log_density(self, sample: Sample) -> Tensor:
        """Return log q(z_i of image b | image c) of all pairs: (batch, batch, latents)."""
        raise NotImplementedError(f"{type(self).__name__} has no densities; set has_densities = False in its latent")

    def pair_kl(self) -> Tensor:
        """Return KL(posterior of image i ‖ posterior of image i + batch / 2): (batch / 2, latents)."""
        raise NotImplementedError(f"{type(self).__name__} has no KL of pairs; set can_share = False in its latent")

    def pooled(self, is_shared: Tensor, multiply: bool = False) -> Posterior:
        """Return the same posteriors, but one for both images of a pair where `is_shared`, (batch / 2, latents).

        It is the average of both, or with `multiply` their normalised geometric mean.
        """
        raise NotImplementedError(f"{type(self).__name__} has no average; set can_share = False in its latent")

    @property
    def categories(self) -> Tensor:
        """The most probable value of each discrete latent, by index: (batch, latents)."""
        return self.parameters.argmax(2)

    @cached_property
    def mean_kl(self) -> Tensor:
        """KL summed over latents, mean over the batch: ()."""
        return self.kl.sum(1).mean()


class Latent(nn.Module, ABC):
    """A family of posteriors with its prior: a module from the outputs of an encoder to a `Posterior`.

    A latent of your own needs `posterior`, `noise` and `values`. It may be several numbers for the decoder (`embed`),
    but has one number in the codes.

    Parameters
    ----------
    num_latents
        Number of latents.
    parameters_per_latent
        Encoder outputs per latent; `num_parameters` is the total.
    numbers_per_latent
        Decoder inputs per latent; `width` is the total.

    Examples
    --------
    >>> import lddr, torch
    >>> latent = lddr.latents.Gaussian(num_latents=3)  # mean and log variance of each
    >>> latent.num_parameters, latent.width, latent(torch.zeros(5, 6)).mean.shape
    (6, 3, torch.Size([5, 3]))
    """

    title = ""  # "Gaussian", say
    is_discrete = False  # whether a latent has a list of values that it can be quantised to
    supervisions: tuple[str, ...] = ()  # losses on labelled images that it has
    masking: tuple[str, ...] = ()  # those that restrict a latent to as many values as its factor has
    has_densities = True  # whether posteriors have a `cross_log_density`
    can_share = False  # whether posteriors have `pair_kl` and `pooled`

    name: str  # in the registry
    prior_variance: float  # of one latent under the prior
    active: Tensor  # (latents, values), discrete: the values in use

    def __init__(self, num_latents: int, parameters_per_latent: int, numbers_per_latent: int = 1) -> None:
        super().__init__()
        self.num_latents = num_latents
        self.parameters_per_latent, self.numbers_per_latent = parameters_per_latent, numbers_per_latent

    @property
    def num_parameters(self) -> int:
        """Encoder outputs for each image."""
        return self.num_latents * self.parameters_per_latent

    @property
    def width(self) -> int:
        """Decoder inputs for each image."""
        return self.num_latents * self.numbers_per_latent

    @property
    def discriminator_width(self) -> int:
        """Discriminator inputs for each image."""
        return self.width

    def forward(self, outputs: Tensor) -> Posterior:
        """Return the posterior of encoder outputs (batch, num_parameters)."""
        if outputs.shape[1:] != (self.num_parameters,):
            wanted = f"{self.num_parameters} outputs for each image ({type(self).__name__}.num_parameters)"
            raise ValueError(f"the encoder must give {wanted}, not a shape of {tuple(outputs.shape)}")
        return self.posterior(outputs.float().unflatten(1, (-1, self.parameters_per_latent)))

    @abstractmethod
    def posterior(self, parameters: Tensor) -> Posterior:
        """Return the posterior of parameters (batch, latents, parameters_per_latent)."""

    @abstractmethod
    def noise(self, batch: int, generator: torch.Generator | None = None, device: torch.device | None = None) -> Tensor:
        """Return the noise that samples of this many posteriors need."""

    def noise_scale(self, step: int, steps: int) -> float:
        """Return the scale of the noise at a training step."""
        return 1.0

    def initialise(self, generator: torch.Generator) -> None:
        """Draw those of its weights that are initialised at random."""

    @abstractmethod
    def values(self) -> Tensor:
        """Return the values of a traversal, (latents, values); discrete: all there are, in ascending order."""

    def values_of(self, latent: int) -> Tensor:
        """Return the values of a traversal of one latent, without masked ones: (values,)."""
        values = self.values()[latent].detach()
        return values[self.active[latent]] if self.is_discrete else values

    def embed(self, codes: Tensor) -> Tensor:
        """Return the decoder's input for codes: (batch, latents) → (batch, width)."""
        return codes

    @property
    def code_range(self) -> tuple[float, float]:
        """Where codes usually lie: three standard deviations of the prior around 0."""
        return -3 * self.prior_variance**0.5, 3 * self.prior_variance**0.5

    def losses(self, posterior: Posterior, sample: Sample) -> dict[str, Tensor]:
        """Return its own weighted losses, by name, which are added to every objective."""
        return {}

    def after_step(self, posterior: Posterior, sample: Sample) -> None:
        """Update tensors that no optimizer trains, from the batch of a training step, after the optimizers.

        It is called without gradients, and must not wait for the device. In your own loop, call it yourself.
        """

    def discriminator_input(self, sample: Sample) -> Tensor:
        """Return a discriminator's input: (batch, latents, …), where all numbers of a latent stay together."""
        return sample.z.unflatten(1, (self.num_latents, -1)) if self.numbers_per_latent > 1 else sample.z

    def codebook_counts(self, counts: Tensor) -> Tensor | None:
        """Return how often each entry of a shared codebook is used, from the counts (latents, values) of the values."""
        return None

    # masks

    def mask_to_factors(self, loss: str, space: FactorSpace) -> None:
        """Restrict latent i to the values of factor i, if the supervised loss masks."""
        if loss in self.masking:
            self.active.copy_(active_values(space, *self.active.shape))

    def cache_mask(self) -> None:
        """Read whether there is a mask, before the module moves to a device for which the host would have to wait."""
        _ = self.is_discrete and self._is_masked

    @cached_property
    def _is_masked(self) -> bool:
        return not bool(self.active.all())

    @property
    def mask(self) -> Tensor | None:
        """The active values, None when all are."""
        return self.active if self._is_masked else None

    # supervision

    def targets(self, loss: str, factors: Indices, space: FactorSpace) -> Tensor:
        """Return the targets of the first latents for labels of images: (images, factors)."""
        raise NotImplementedError(f"{type(self).__name__} names supervisions but has no targets")

    def errors(self, loss: str, posterior: Posterior, targets: Tensor) -> Tensor:
        """Return the supervised loss of every label: (images, factors)."""
        raise NotImplementedError(f"{type(self).__name__} names supervisions but has no errors")

    def risk(self, loss: str, posterior: Posterior, targets: Tensor, known: Tensor | None = None) -> Tensor:
        """Return R_s of labelled images: the errors of the known labels, summed over factors, mean over images."""
        errors = self.errors(loss, posterior, targets)
        return (errors if known is None else errors.where(known, 0.0)).sum(1).mean()

    def guess(self, loss: str, seen: Tensor, unseen: Tensor) -> Tensor:
        """Return the errors (m,) for targets `unseen` (m,) of the constant prediction that is best for `seen` (n,)."""
        raise NotImplementedError(f"{type(self).__name__} names supervisions but has no guess")


class DiscreteLatent(Latent):
    """A latent with a list of values, of which `active` are in use; here all latents have the same `positions`."""

    is_discrete = True

    positions: Tensor  # (categories,)

    def __init__(
        self, num_latents: int, num_categories: int, parameters_per_latent: int, numbers_per_latent: int = 1
    ) -> None:
        super().__init__(num_latents, parameters_per_latent, numbers_per_latent)
        self.num_categories = num_categories
        self.register_buffer("active", torch.ones(num_latents, num_categories, dtype=torch.bool))

    @property
    def category_values(self) -> Tensor:
        """The value of each category, in ascending order: (categories,)."""
        return self.positions

    def values(self) -> Tensor:
        return self.category_values.expand(self.num_latents, -1)

    def category_weights(self, codes: Tensor) -> Tensor:  # (batch, latents) → (batch, latents, categories)
        """Return one-hot vectors for codes that number categories from -1 to 1; a code between two mixes both."""
        place = (codes.clamp(-1, 1) + 1) * ((self.num_categories - 1) / 2)
        is_category = (place - place.round()).abs() < 1e-4  # up to what is lost in scaling
        place = torch.where(is_category, place.round(), place)
        return (1 - (place.unsqueeze(-1) - torch.arange(self.num_categories, device=codes.device)).abs()).clamp(min=0)


def usual_supervision(latent: object) -> str | None:
    """Return the default supervised loss of a latent: one that masks, where there is one."""
    return next(iter((*latent.masking, *latent.supervisions)), None)  # type: ignore[attr-defined]


def normalised(factors: Indices, space: FactorSpace) -> Tensor:
    """Return factor values as numbers from 0 to 1: (images, factors)."""
    return (torch.as_tensor(factors).double() / _steps(space)).float()


def bins(factors: Indices | Tensor, space: FactorSpace, num_values: int) -> Tensor:
    """Return the category of each factor value: j of m' goes to round(j · (m-1)/(m'-1)): (images, factors).

    Ties go up. In whole numbers, because floating point breaks the tie at some sizes (27 and 53 values of 64).
    """
    steps = _steps(space)
    return (2 * torch.as_tensor(factors).long() * (num_values - 1) + steps) // (2 * steps)


def active_values(space: FactorSpace, num_latents: int, num_values: int) -> Tensor:
    """Return J_i for the latents of factors with fewer values than the latent; all values for every other latent."""
    active = torch.ones(num_latents, num_values, dtype=torch.bool)
    for latent, size in enumerate(space.sizes):
        if size < num_values:
            every = torch.arange(size)[:, None].expand(-1, len(space.sizes))
            active[latent] = False
            active[latent, bins(every, space, num_values)[:, latent]] = True
    return active


def _steps(space: FactorSpace) -> Tensor:
    """Return the number of steps from the first value of each factor to its last: (factors,)."""
    return torch.tensor(space.sizes).sub(1).clamp(min=1)
