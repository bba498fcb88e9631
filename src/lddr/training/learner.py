"""What is trained and how one step changes it: the VAE, an adversary if the objective has one, their optimisers."""

from collections.abc import Callable, Iterator
from functools import reduce

import torch
from torch import Tensor, nn

from lddr import terms
from lddr.config import Config, Training
from lddr.data.dataset import Dataset, as_floats, stream
from lddr.latents.family import Latent
from lddr.networks.coders import initialise
from lddr.networks.pixel_loss import reconstruction_to_learn_by
from lddr.networks.vae import VAE
from lddr.objectives.adversary import Network
from lddr.objectives.objective import Moment, mean_kl
from lddr.training.adam import Adam
from lddr.training.checkpoint import fill, load_module, module_tensors
from lddr.training.draws import torch_stream
from lddr.training.inputs import Inputs, Labelled
from lddr.training.replay import Body, Record, Recorded, Replayed, Step, on_own_stream, record_graph

SEEN = 1024  # images, to know how bright they are
SMALLEST_CONTRAST = 0.01  # nats: images that are all the same have none
HEED_HALTED = ("cuda", "meta")  # where Adam's kernel is known to heed `halted`, so that nobody needs to look


class Learner:
    """The state of a training run; everything it does depends on its weights and the inputs of the step alone.

    `halted` is 1 from the first loss on that is no number: nothing changes any more. Only a learner that `waits` looks
    at it, after every step.
    """

    def __init__(self, config: Config, dataset: Dataset, device: torch.device) -> None:
        self.config, self.device = config, device
        vae = build_vae(config, dataset).initialise(self._stream("weights"))
        if config.networks.mean_bias:
            vae.begin_at(mean_brightness(dataset))
        self.reconstruction_weight = reconstruction_weight(config.training, dataset)
        vae.family.settle()
        self.vae = vae.to(device)
        self.halted, self.waits = torch.zeros((), device=device), device.type not in HEED_HALTED
        training = config.training
        rate, decay, clip = training.learning_rate, training.weight_decay, training.clip
        values, clip_of = self.vae.family.parameters(), training.clip_of
        self.optimizer = Adam(self.vae.parameters(), rate, (0.9, 0.999), decay, clip, values, clip_of)
        self.adversary = config.objective.adversary(config.latent.numbers_shown)
        if self.adversary is not None:
            network = self.adversary.network
            initialise(network, self._stream("discriminator"), config.networks.initialiser)
            weights = network.to(device).parameters()
            self.referee = Adam(weights, self.adversary.learning_rate, self.adversary.betas)

    def capture(self) -> None:
        """Let torch compile the networks; on CUDA the whole step, optimisers and all, is then launched as one graph."""
        networks = [self.vae.encoder, self.vae.decoder] + ([self.adversary.network] if self.adversary else [])
        for network in networks:
            network.compile()
        if self.device.type == "cuda":
            self.replay(on_own_stream, record_graph)

    def replay(self, warm_up: Callable[[Step], Step], record: Record) -> None:
        """From now on take a few more steps as they are, then record one and replay it."""

        def without_gradients(body: Body) -> Recorded:
            for _, _, _, optimizer in self._trained():  # those of the replayed step have memory of their own
                optimizer.forget_gradients()
            return record(body)

        self.step = Replayed(warm_up(self.step), without_gradients)  # type: ignore[method-assign]

    def step(self, inputs: Inputs) -> dict[str, Tensor]:
        """One step of the training; gives what the loss is made of."""
        loss, parts = self.losses(inputs)
        torch.logical_or(self.halted, loss.detach() * 0, out=self.halted)  # what is no number has no 0
        self.update(loss, inputs)
        return parts

    def losses(self, inputs: Inputs) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch and what it is made of, in nats per image.

        No weight changes; an adversary's gradients are left where its optimiser finds them.
        """
        encoder, decoder = self._in_precision(self.vae.encoder), self._in_precision(self.vae.decoder)
        latent = self.vae.family(encoder(inputs.images), inputs.noise, inputs.noise_scale)
        reconstruction = reconstruction_to_learn_by(decoder(latent.z), inputs.images)
        penalties = self.config.objective.penalties(latent, self._moment(inputs))
        penalties |= self.config.latent.losses(self.vae.family, latent)
        if inputs.labelled is not None and self.config.supervision is not None:
            weight = self.config.supervision.weight(len(inputs.labelled.images))
            penalties["supervision"] = weight * self.risk(inputs.labelled, encoder)
            if self.config.supervision.free_penalty:
                penalties["free_penalty"] = self._repeated(latent, inputs.labelled.targets.shape[1])
        weight = self.reconstruction_weight
        weighted = reconstruction if weight == 1 else weight * reconstruction
        loss = weighted + reduce(torch.add, penalties.values()) if penalties else weighted
        kl = mean_kl(latent)
        parts = {"loss": loss, "elbo": -reconstruction - kl, "reconstruction": reconstruction, "kl": kl}
        parts |= {name: value for name, value in penalties.items() if name != "kl"}
        return loss, {name: value.detach() for name, value in parts.items()}

    def risk(self, labelled: Labelled, encoder: Network | None = None) -> Tensor:
        """R_s, the supervised risk, of labelled images; with the encoder in float32 unless one is given."""
        assert self.config.supervision is not None
        latent = self.vae.family((encoder or self.vae.encoder)(labelled.images))
        return self.config.latent.risk(self.config.supervision.loss, latent, labelled.targets, labelled.known)

    def _repeated(self, latent: Latent, tied: int) -> Tensor:
        """The weighted penalty on free latents, which alone it moves, for what they repeat of the tied ones."""
        assert self.config.supervision is not None
        repeated = terms.squared_correlations(latent.mean[:, tied:], latent.mean[:, :tied].detach())
        return self.config.supervision.free_penalty * repeated.sum()

    @torch.no_grad()
    def validation(self, unseen: Labelled | None) -> dict[str, float]:
        """R_s of labelled images that do not train, nothing when there are none."""
        return {} if unseen is None or not len(unseen.targets) else {"validation_risk": self.risk(unseen).item()}

    def update(self, loss: Tensor, inputs: Inputs) -> None:
        """One step of Adam for the VAE; an adversary's gradients are there already and it takes its own step."""
        if self.waits and self.halted.item():
            return
        halted = None if self.waits else self.halted
        self.optimizer.forget_gradients()
        loss.backward()
        self.optimizer.learning_rate = inputs.learning_rate
        self.optimizer.step(halted)
        if self.adversary:
            if self.adversary.schedule == "model":
                share = self.adversary.learning_rate / self.config.training.learning_rate
                self.referee.learning_rate = share * inputs.learning_rate
            self.referee.step(halted)

    def _moment(self, inputs: Inputs) -> Moment:
        decoder, verdict = self._in_precision(self.vae.decoder), self._verdict(inputs.challenge)
        hidden = self.vae.decoder.hidden  # in float32, because differences of rounded numbers say nothing
        return Moment(inputs.schedule, self.vae.family, decoder, hidden, inputs.drawn, verdict)

    def _verdict(self, drawn: Tensor | None) -> Callable[[Latent], Tensor] | None:
        adversary, family = self.adversary, self.config.latent
        if adversary is None or drawn is None:
            return None
        network = self._in_precision(adversary.network)
        return lambda latent: adversary.meet(family.shown(latent), drawn, network)

    def _in_precision(self, network: nn.Module) -> Network:
        """A network that computes in the precision of the run; its outputs, and all terms of the loss, are float32."""
        if self.config.training.precision == "fp32":
            return network

        def outputs(inputs: Tensor) -> Tensor:
            with torch.autocast(self.device.type, torch.bfloat16):
                return network(inputs).float()

        return outputs

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


def mean_brightness(dataset: Dataset) -> Tensor:
    """Of every channel, (channels,), from images that are the same for every run."""
    return torch.from_numpy(as_floats(dataset.draw(stream(0, "brightness"), SEEN)).mean(axis=(0, 1, 2)))


def reconstruction_weight(training: Training, dataset: Dataset) -> float:
    """The weight that was set, raised where the images have less contrast than `min_contrast` asks for."""
    if not training.min_contrast:
        return training.reconstruction_weight
    images = torch.from_numpy(as_floats(dataset.draw(stream(0, "brightness"), SEEN)))
    contrast = training.reconstruction_weight * max(terms.contrast(images), SMALLEST_CONTRAST)
    return training.reconstruction_weight * max(1.0, training.min_contrast / contrast)


def build_vae(config: Config, dataset: Dataset) -> VAE:
    """The untrained model of these settings for the images of this dataset."""
    vae = VAE(dataset.image_shape, config.latent, config.networks)
    if config.supervision is not None:
        config.supervision.check_dataset(config.latent, dataset)
        vae.family.tie(config.supervision.loss, dataset.space)
    return vae
