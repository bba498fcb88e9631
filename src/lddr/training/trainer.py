"""The training step: batch → posterior → sample → reconstruction → loss → discriminator → optimizers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from lddr import losses
from lddr.config import Config, Training
from lddr.data.dataset import Dataset, as_floats, stream
from lddr.likelihoods import Likelihood
from lddr.networks import build, decoders, encoders
from lddr.networks.coders import initialise
from lddr.objectives.objective import AdversarialObjective, Loss, Objective
from lddr.training.adam import Adam
from lddr.training.batches import Batch, Labelled, torch_stream
from lddr.training.checkpoint import fill, load_module, module_tensors
from lddr.vae import VAE, Output, evaluating, in_precision

LOG_EVERY = 100  # steps at most; a line of the log is the mean over them
LEAST_LINES = 10  # of a run with as many steps
SEEN = 1024  # images that the mean brightness and the contrast are measured on
SMALLEST_CONTRAST = 0.01  # nats: identical images have none


class Trainer:
    """A VAE, its objective and their optimizers. What a step does depends on the weights and the batch alone."""

    checks_every_step = True  # whether the loop looks at every step's loss, which an accelerator would have to wait for

    def __init__(
        self,
        config: Config,
        dataset: Dataset,
        device: torch.device,
        vae: VAE | None = None,
        objective: Objective | None = None,
    ) -> None:
        self.config, self.device = config, device
        self.precision = torch.bfloat16 if config.training.precision == "bf16" else None
        self.vae = (new_vae(config, dataset) if vae is None else vae).train()
        self.vae.latent.cache_mask()
        self.vae.to(device)
        self.objective = (config.objective.build() if objective is None else objective).attach(self.vae.latent)
        self.objective.reconstruction_weight = reconstruction_weight(config.training, dataset, self.vae.likelihood)
        training = config.training
        self.optimizer = Adam(
            self.vae.parameters(),
            training.learning_rate,
            betas=(0.9, 0.999),
            decay=training.weight_decay,
            clip=training.clip,
            no_decay=[*self.vae.latent.parameters(), *self.vae.likelihood.parameters()],
            clip_of=training.clip_of,
        )
        if isinstance(self.objective, AdversarialObjective):
            discriminator = self.discriminator
            initialise(discriminator, torch_stream(training.seed, "discriminator"), config.networks.initialiser)
            discriminator.to(device)
            rate, betas = self.objective.discriminator_learning_rate, self.objective.discriminator_betas
            self.discriminator_optimizer = Adam(discriminator.parameters(), rate, betas)

    @property
    def discriminator(self) -> nn.Module:
        assert self.objective.discriminator is not None
        return self.objective.discriminator

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Update the weights by one batch and return the terms of its loss. A non-finite loss is not applied."""
        loss = self.loss(batch)
        if loss.total.isfinite():
            self.update(loss, batch)
        return loss.terms

    def loss(self, batch: Batch) -> Loss:
        """Return the loss of a batch, in nats per image."""
        networks = self.vae.encoder, self.vae.decoder
        encoder, decoder = (in_precision(network, self.precision) for network in networks)
        posterior = self.objective.share(self.vae.latent(encoder(batch.images)))
        sample = posterior.sample(batch.noise, batch.noise_scale)
        output = Output(decoder(sample.z), posterior, sample, self.vae, self.precision)
        loss = self.objective(output, batch.images, schedule=batch.schedule, random=batch.random)
        return loss.plus(**self._supervision(output, batch.labelled)) if batch.labelled else loss

    def update(self, loss: Loss, batch: Batch, found_inf: Tensor | None = None) -> None:
        """Take a step of Adam for the VAE, and one for a discriminator by its own loss on the same samples.

        Then the latent may update tensors that no optimizer trains (`after_step`).
        """
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.learning_rate = batch.learning_rate
        self.optimizer.step(found_inf)
        if loss.discriminator is not None and isinstance(self.objective, AdversarialObjective):
            weights = list(self.discriminator.parameters())
            gradients = torch.autograd.grad(loss.discriminator, weights)
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.grad = gradient
            if self.objective.discriminator_schedule == "model":
                share = self.objective.discriminator_learning_rate / self.config.training.learning_rate
                self.discriminator_optimizer.learning_rate = share * batch.learning_rate
            self.discriminator_optimizer.step(found_inf)
        if loss.output is not None:
            with torch.no_grad():
                self.vae.latent.after_step(loss.output.posterior, loss.output.sample)

    # supervision

    def _supervision(self, output: Output, labelled: Labelled) -> dict[str, Tensor]:
        """Return the supervised risk, and the penalty on free latents that repeat the tied ones, if it is used."""
        supervision = self.config.supervision
        assert supervision is not None
        posterior = self.vae.latent(in_precision(self.vae.encoder, self.precision)(labelled.images))
        risk = self.vae.latent.risk(supervision.loss, posterior, labelled.targets, labelled.known)
        penalties = {"supervision": supervision.weight(len(labelled.images)) * risk}
        if supervision.free_penalty:
            codes, tied = output.posterior.mean, labelled.targets.shape[1]
            repeated = losses.squared_correlations(codes[:, tied:], codes[:, :tied].detach())
            penalties["free_penalty"] = supervision.free_penalty * repeated.sum()
        return penalties

    @torch.no_grad()
    def validation(self, labelled: Labelled | None) -> dict[str, float]:
        """Return the supervised risk of labelled images that do not train, in float32; nothing if there are none."""
        if labelled is None or not len(labelled.targets) or self.config.supervision is None:
            return {}
        with evaluating(self.vae):
            posterior = self.vae.encode(labelled.images)
        risk = self.vae.latent.risk(self.config.supervision.loss, posterior, labelled.targets, labelled.known)
        return {"validation_risk": risk.item()}

    # checkpoints

    def _trained(self) -> Iterator[tuple[str, nn.Module, str, Adam]]:
        """Yield the networks and their optimizers, with their names in a checkpoint."""
        yield "vae", self.vae, "adam", self.optimizer
        if self.objective.discriminator is not None:
            yield "discriminator", self.objective.discriminator, "referee", self.discriminator_optimizer

    def tensors(self) -> dict[str, Tensor]:
        """Return everything that a checkpoint must keep, by name."""
        state: dict[str, Tensor] = {}
        for name, network, memory, optimizer in self._trained():
            state |= module_tensors(name, network) | optimizer.tensors(memory)
        return state

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Load what `tensors` returned."""
        for name, network, memory, optimizer in self._trained():
            load_module(name, network, tensors)
            fill(memory, optimizer.tensors(memory), tensors)


def new_vae(config: Config, dataset: Dataset) -> VAE:
    """Return the model of these settings for the images of this dataset, with initial weights."""
    vae = vae_of(config, dataset.image_shape)
    generator = torch_stream(config.training.seed, "weights")
    initialise(vae, generator, config.networks.initialiser)
    vae.latent.initialise(generator)
    return prepare_vae(vae, config, dataset).to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def prepare_vae(vae: VAE, config: Config, dataset: Dataset) -> VAE:
    """Mask categories to the labels, initialise the output bias to the mean brightness, and return the model."""
    if config.supervision is not None:
        config.supervision.check_dataset(config.latent, dataset)
        vae.latent.mask_to_factors(config.supervision.loss, dataset.space)
    if config.networks.mean_bias:
        initialise_output_bias(vae, dataset)
    return vae


def vae_of(config: Config, image_shape: tuple[int, int, int], **own: Any) -> VAE:
    """Return the model of these settings for images of (height, width, channels).

    `own` has the modules that a user gave in place of registered ones: latent, encoder, decoder, likelihood.
    """
    networks = config.networks
    latent = own.get("latent") or config.latent.build()
    likelihood = own.get("likelihood") or config.likelihood.build()
    sizes = {"width": networks.width, "kernels": networks.kernels, "depth": networks.depth}
    encoder = own.get("encoder") or build(encoders[networks.encoder], image_shape, latent.num_parameters, **sizes)
    decoder = own.get("decoder") or build(decoders[networks.decoder], latent.width, image_shape, **sizes)
    return VAE(encoder, decoder, latent, likelihood)


@torch.no_grad()
def initialise_output_bias(vae: VAE, dataset: Dataset) -> None:
    """Initialise the decoder's output bias to the mean brightness of every channel."""
    bias, (height, width, channels) = output_bias(vae), dataset.image_shape
    if bias is None or bias.numel() not in (channels, channels * height * width):
        return
    brightness = torch.from_numpy(as_floats(dataset.draw(stream(0, "brightness"), SEEN)).mean(axis=(0, 1, 2)))
    bias.copy_(vae.likelihood.outputs_of(brightness).repeat_interleave(bias.numel() // channels).view_as(bias))


@torch.no_grad()
def output_bias(vae: VAE) -> Tensor | None:
    """Return the bias of the decoder's last layer, if all that it does is to shift the outputs."""
    biases = [bias for layer in vae.decoder.modules() if isinstance(bias := getattr(layer, "bias", None), Tensor)]
    if not biases:
        return None
    bias, kept = biases[-1], biases[-1].clone()
    z = torch.zeros(1, vae.latent.width, device=bias.device)
    with evaluating(vae.decoder):
        before = vae.decoder(z)
        bias += 1
        is_shifted = torch.allclose(vae.decoder(z), before + 1, atol=1e-4)
    bias.copy_(kept)
    return bias if is_shifted else None


def reconstruction_weight(training: Training, dataset: Dataset, likelihood: Likelihood) -> float:
    """Return the weight that was set, raised if the images have less contrast than `min_contrast` asks for."""
    if not training.min_contrast:
        return training.reconstruction_weight
    images = torch.from_numpy(as_floats(dataset.draw(stream(0, "brightness"), SEEN)))
    contrast = training.reconstruction_weight * max(likelihood.contrast(images), SMALLEST_CONTRAST)
    return training.reconstruction_weight * max(1.0, training.min_contrast / contrast)


def log_interval(steps: int) -> int:
    """Return after how many steps a run of this length logs a line; the last step always ends one."""
    return min(LOG_EVERY, max(1, steps // LEAST_LINES))


class LossAverages:
    """`add` never waits for a device; `read` does, for all steps since the last time."""

    def __init__(self, first_step: int, sums: Tensor | None) -> None:
        """Start at a step, with the sums (doubles) of the steps before it that are in no line yet."""
        self.sums = sums
        self.latest: dict[str, float] = {}  # of the last step that was read
        self._step, self._rows = first_step, list[Tensor]()
        self._names: tuple[str, ...] = ()

    def add(self, parts: Mapping[str, Tensor]) -> None:
        self._names = tuple(parts)
        self._rows.append(torch.stack(list(parts.values())))

    def read(self) -> dict[int, dict[str, float]]:
        """Return the terms of every step that was not read yet, and add them to the sums in double precision."""
        read = {}
        for row in torch.stack(self._rows).cpu().double():
            self.sums = row if self.sums is None else self.sums + row
            read[self._step] = dict(zip(self._names, row.tolist(), strict=True))
            self._step += 1
        self._rows = []
        self.latest = read[self._step - 1]
        return read

    def line(self, steps: int) -> dict[str, float]:
        """Return the means of this many steps, those of a line, which ends here."""
        assert self.sums is not None
        means = dict(zip(self._names, (self.sums / steps).tolist(), strict=True))
        self.sums = None
        return means
