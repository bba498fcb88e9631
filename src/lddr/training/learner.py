"""What is trained and how one step changes it: the VAE, where needed a discriminator, and their optimisers."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from lddr.config import Config
from lddr.data.dataset import Dataset, stream
from lddr.data.factors import Indices
from lddr.models.categorical import Categorical
from lddr.models.nets import Discriminator, initialise
from lddr.models.vae import VAE
from lddr.objectives import terms
from lddr.objectives.losses import Factor, Moment, mean_kl
from lddr.objectives.supervision import active_categories
from lddr.training.checkpoint import load_module, load_optimizer, module_tensors, optimizer_tensors
from lddr.training.feed import LabelledFeed

Labelled = tuple[Tensor, Indices]  # images and their factor values


def torch_stream(seed: int, purpose: str, *position: int) -> torch.Generator:
    """`stream` for torch: a generator that depends on seed, purpose and position alone."""
    return torch.Generator().manual_seed(int(stream(seed, purpose, *position).integers(2**63)))


class Learner:
    """The state of a training run; everything it does depends on its weights, the step and the images alone."""

    def __init__(self, config: Config, dataset: Dataset, device: torch.device) -> None:
        self.config, self.space, self.device = config, dataset.space, device
        self.vae = build_vae(config, dataset).initialise(self._stream("weights")).to(device)
        rate = config.training.learning_rate
        self.optimizer = torch.optim.Adam(self.vae.parameters(), rate, betas=(0.9, 0.999), fused=True)
        self.discriminator: nn.Module | None = None
        if isinstance(config.objective, Factor):
            self.discriminator = Discriminator(config.latent.num_latents, config.objective.discriminator_width)
            initialise(self.discriminator, self._stream("discriminator"), config.networks.initialiser)
            weights = self.discriminator.to(device).parameters()
            rate = config.objective.discriminator_learning_rate
            self.referee = torch.optim.Adam(weights, rate, betas=(0.5, 0.9), fused=True)

    def capture(self) -> None:
        """Let torch compile the networks; on CUDA their kernels are then launched as one graph."""
        mode = "reduce-overhead" if self.device.type == "cuda" else None
        for network in (self.vae.encoder, self.vae.decoder, self.discriminator):
            if network is not None:
                network.compile(mode=mode)

    def losses(self, images: Tensor, labelled: Labelled | None, step: int) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch and what it is made of, in nats per image; nothing is changed."""
        family, training = self.vae.family, self.config.training
        noise = family.noise(len(images), self._stream("noise", step)).to(self.device)
        scale = family.noise_scale(step, training.steps)
        with self._precision():
            logits, latent = self.vae(images, noise, scale)
            reconstruction = terms.bernoulli_reconstruction(logits, images)
            judge = self._judge(step) if self.discriminator else None
            penalties = self.config.objective.penalties(latent, Moment(step, family, judge))
            if labelled is not None:
                penalties["supervision"] = self.config.supervision.omega * self.risk(*labelled)  # type: ignore[union-attr]
        loss = reconstruction + torch.stack(list(penalties.values())).sum()
        kl = mean_kl(latent)
        parts = {"loss": loss, "elbo": -reconstruction - kl, "reconstruction": reconstruction, "kl": kl}
        parts |= {name: value for name, value in penalties.items() if name != "kl"}
        return loss, {name: value.detach() for name, value in parts.items()}

    def risk(self, images: Tensor, factors: Indices) -> Tensor:
        """R_s, the supervised risk, of labelled images."""
        assert self.config.supervision is not None
        return self.config.supervision.risk(self.vae.encode(images), factors, self.space)

    @torch.no_grad()
    def validation(self, unseen: LabelledFeed) -> dict[str, float]:
        """R_s of labelled images that do not train, nothing when there are none."""
        return {"validation_risk": self.risk(unseen.images, unseen.factors).item()} if len(unseen.factors) else {}

    def update(self, loss: Tensor) -> None:
        """One step of Adam for the VAE; the discriminator's gradients are there already and it takes its own step."""
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        if self.discriminator:
            self.referee.step()

    def _judge(self, step: int) -> Callable[[Tensor], Tensor]:
        """The mean log-ratio of z: its gradient reaches z alone; the discriminator's loss reaches it alone."""

        def density_ratio(z: Tensor) -> Tensor:
            assert self.discriminator is not None
            codes = z.detach().requires_grad_()
            joint = self.discriminator(codes)
            permuted = self.discriminator(terms.permute_latents(z, self._stream("permutation", step)))
            ratio = terms.density_ratio(joint.float())
            (slope,) = torch.autograd.grad(ratio, codes, retain_graph=True)
            own_loss = terms.discriminator_loss(joint.float(), permuted.float())
            weights = list(self.discriminator.parameters())
            for weight, gradient in zip(weights, torch.autograd.grad(own_loss, weights), strict=True):
                weight.grad = gradient
            return ratio.detach() + (slope * (z - codes.detach())).sum()  # the same value, and the slope for z

        return density_ratio

    def _precision(self) -> AbstractContextManager:
        low = self.config.training.precision == "bf16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=low)

    def _stream(self, purpose: str, *position: int) -> torch.Generator:
        return torch_stream(self.config.training.seed, purpose, *position)

    def tensors(self) -> dict[str, Tensor]:
        """Everything a checkpoint must keep, by name."""
        state = module_tensors("vae", self.vae) | optimizer_tensors("adam", self.optimizer)
        if self.discriminator:
            state |= module_tensors("discriminator", self.discriminator)
            state |= optimizer_tensors("referee", self.referee)
        return state

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """The inverse of `tensors`."""
        load_module("vae", self.vae, tensors)
        load_optimizer("adam", self.optimizer, tensors)
        if self.discriminator:
            load_module("discriminator", self.discriminator, tensors)
            load_optimizer("referee", self.referee, tensors)


def build_vae(config: Config, dataset: Dataset) -> VAE:
    """The untrained model of these settings for the images of this dataset."""
    active = None
    if config.supervision is not None:
        config.supervision.check(config.latent_name, config.latent.num_latents, dataset)
        if isinstance(config.latent, Categorical) and config.supervision.loss == "masked":
            active = active_categories(dataset.space, config.latent.num_latents, config.latent.num_categories)
    return VAE(dataset.image_shape, config.latent.build(active), config.networks)
