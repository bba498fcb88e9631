"""A training step of the D-VAE with the paper's networks in JAX, Haiku and Optax; runs in an environment with them."""

import os
from collections.abc import Callable
from itertools import cycle

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"  # before jax is imported

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax

LATENTS, CATEGORIES = 10, 64


def encode(images: jax.Array) -> jax.Array:
    """Return the logits of all categories: (batch, latents, categories)."""
    features = images
    for channels in (32, 32, 64, 64):
        features = jax.nn.relu(hk.Conv2D(channels, 4, stride=2)(features))
    hidden = jax.nn.relu(hk.Linear(256)(hk.Flatten()(features)))
    return hk.Linear(LATENTS * CATEGORIES)(hidden).reshape(-1, LATENTS, CATEGORIES)


def decode(z: jax.Array) -> jax.Array:
    """Return the logits of the images: (batch, height, width, 1)."""
    hidden = jax.nn.relu(hk.Linear(256)(z))
    features = jax.nn.relu(hk.Linear(1024)(hidden)).reshape(-1, 4, 4, 64)
    for channels in (64, 32, 32):
        features = jax.nn.relu(hk.Conv2DTranspose(channels, 4, stride=2)(features))
    return hk.Conv2DTranspose(1, 4, stride=2)(features)


def negative_elbo(images: jax.Array) -> jax.Array:
    """Return the mean over the batch of reconstruction and KL to uniform categories, with Gumbel-softmax samples."""
    logits = encode(images)
    gumbel = jax.random.gumbel(hk.next_rng_key(), logits.shape)
    z = jax.nn.softmax(logits + gumbel) @ jnp.linspace(-1, 1, CATEGORIES)
    reconstruction = optax.sigmoid_binary_cross_entropy(decode(z), images).sum((1, 2, 3))
    log_probabilities = jax.nn.log_softmax(logits)
    kl = (jnp.exp(log_probabilities) * (log_probabilities + jnp.log(CATEGORIES))).sum((1, 2))
    return (reconstruction + kl).mean()


def prepared(file: str) -> Callable[[], float]:
    """Return a function that takes a training step on the next batch (images, height, width, 1) and gives its loss."""
    batches = [jnp.asarray(batch) for batch in np.load(file)]
    loss, adam = hk.transform(negative_elbo), optax.adam(1e-4)
    key = jax.random.key(0)
    weights = loss.init(key, batches[0])
    moments = adam.init(weights)

    @jax.jit
    def update(weights, moments, key, images):
        key, noise = jax.random.split(key)
        value, gradients = jax.value_and_grad(loss.apply)(weights, noise, images)
        changes, moments = adam.update(gradients, moments)
        return optax.apply_updates(weights, changes), moments, key, value

    ready = cycle(batches)

    def step() -> float:
        nonlocal weights, moments, key
        weights, moments, key, value = update(weights, moments, key, next(ready))
        return float(value)  # waits for the step

    return step
