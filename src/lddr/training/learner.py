"""What is trained and how one step changes it: the VAE, an adversary if the objective has one, their optimisers."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from lddr import terms
from lddr.config import Config
from lddr.data.dataset import Dataset, stream
from lddr.data.factors import Indices
from lddr.networks.coders import initialise
from lddr.networks.vae import VAE
from lddr.objectives.objective import Moment, mean_kl
from lddr.training.adam import Adam
from lddr.training.checkpoint import fill, load_module, module_tensors
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
        training = config.training
        rate, decay, clip = training.learning_rate, training.weight_decay, training.clip
        self.optimizer = Adam(self.vae.parameters(), rate, (0.9, 0.999), decay, clip)
        self.adversary = config.objective.adversary(config.latent.num_latents)
        if self.adversary is not None:
            network = self.adversary.network
            initialise(network, self._stream("discriminator"), config.networks.initialiser)
            weights = network.to(device).parameters()
            self.referee = Adam(weights, self.adversary.learning_rate, self.adversary.betas)

    def capture(self) -> None:
        """Let torch compile the networks; on CUDA their kernels are then launched as one graph."""
        mode = "reduce-overhead" if self.device.type == "cuda" else None
        networks = [self.vae.encoder, self.vae.decoder] + ([self.adversary.network] if self.adversary else [])
        for network in networks:
            network.compile(mode=mode)

    def losses(self, images: Tensor, labelled: Labelled | None, step: int) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch and what it is made of, in nats per image.

        No weight changes; an adversary's gradients are left where its optimiser finds them.
        """
        layer, training = self.vae.family, self.config.training
        noise = layer.family.noise(len(images), self._stream("noise", step)).to(self.device)
        scale = layer.family.noise_scale(step, training.steps)
        with self._precision():
            logits, latent = self.vae(images, noise, scale)
            reconstruction = terms.bernoulli_reconstruction(logits, images)
            moment = Moment(step, layer, self.vae.decoder, self._verdict(step))
            penalties = self.config.objective.penalties(latent, moment)
            if labelled is not None and self.config.supervision is not None:
                weight = self.config.supervision.weight(len(labelled[0]))
                penalties["supervision"] = weight * self.risk(*labelled)
        loss = training.reconstruction_weight * reconstruction + torch.stack(list(penalties.values())).sum()
        kl = mean_kl(latent)
        parts = {"loss": loss, "elbo": -reconstruction - kl, "reconstruction": reconstruction, "kl": kl}
        parts |= {name: value for name, value in penalties.items() if name != "kl"}
        return loss, {name: value.detach() for name, value in parts.items()}

    def risk(self, images: Tensor, factors: Indices) -> Tensor:
        """R_s, the supervised risk, of labelled images."""
        assert self.config.supervision is not None
        return self.config.latent.risk(self.config.supervision.loss, self.vae.encode(images), factors, self.space)

    @torch.no_grad()
    def validation(self, unseen: LabelledFeed) -> dict[str, float]:
        """R_s of labelled images that do not train, nothing when there are none."""
        return {"validation_risk": self.risk(unseen.images, unseen.factors).item()} if len(unseen.factors) else {}

    def update(self, loss: Tensor, step: int) -> None:
        """One step of Adam for the VAE; an adversary's gradients are there already and it takes its own step."""
        self.optimizer.forget_gradients()
        loss.backward()
        self.optimizer.learning_rate = self.config.training.learning_rate_at(step)
        self.optimizer.step()
        if self.adversary:
            self.referee.step()

    def _verdict(self, step: int) -> Callable[[Tensor], Tensor] | None:
        adversary = self.adversary
        return None if adversary is None else lambda z: adversary.meet(z, self._stream("permutation", step))

    def _precision(self) -> AbstractContextManager:
        low = self.config.training.precision == "bf16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=low)

    def _stream(self, purpose: str, *position: int) -> torch.Generator:
        return torch_stream(self.config.training.seed, purpose, *position)

    def _trained(self) -> Iterator[tuple[str, nn.Module, str, Adam]]:
        """The networks and their optimisers, by their names in a checkpoint."""
        yield "vae", self.vae, "adam", self.optimizer
        if self.adversary:
            yield "discriminator", self.adversary.network, "referee", self.referee

    def tensors(self) -> dict[str, Tensor]:
        """Everything a checkpoint must keep, by name."""
        state: dict[str, Tensor] = {}
        for name, network, memory, optimizer in self._trained():
            state |= module_tensors(name, network) | optimizer.tensors(memory)
        return state

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """The inverse of `tensors`."""
        for name, network, memory, optimizer in self._trained():
            load_module(name, network, tensors)
            fill(memory, optimizer.tensors(memory), tensors)


def build_vae(config: Config, dataset: Dataset) -> VAE:
    """The untrained model of these settings for the images of this dataset."""
    vae = VAE(dataset.image_shape, config.latent, config.networks)
    if config.supervision is not None:
        config.supervision.check_dataset(config.latent, dataset)
        vae.family.tie(config.supervision.loss, dataset.space)
    return vae
