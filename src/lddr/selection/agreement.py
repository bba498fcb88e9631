"""How far discrete models agree on what their categories mean, up to the order of latents and names of categories."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lddr.metrics.information import Floats, Whole

GROUPS = 16  # 64 x 64 categories are too many cells for the 1000 images they are counted on


def agreement(models: Sequence[Whole]) -> Floats:
    """(models, models), from grouped categories (samples, latents in use) of the same images; 1 on the diagonal.

    For a pair, latents are matched one to one so that the sum of their normalised mutual information is largest; that
    sum over the larger number of latents is 1 if each latent of one is a renaming of a latent of the other.
    """
    from scipy.optimize import linear_sum_assignment

    counted = [_indicators(model) for model in models]
    pairs = np.eye(len(models))
    for row in range(len(models)):
        for column in range(row):
            shared = normalised_information(counted[row], counted[column])
            matched = shared[linear_sum_assignment(shared, maximize=True)].sum()
            pairs[row, column] = pairs[column, row] = matched / max(*shared.shape, 1)
    return pairs


def grouped(categories: Whole) -> Whole:
    """Neighbouring categories of one latent, (samples,), merged into at most 16 groups of about equal size.

    A category goes where the middle of its share falls, so that a latent with a few large categories keeps them.
    """
    _, numbers, counts = np.unique(categories, return_inverse=True, return_counts=True)
    middles = (np.cumsum(counts) - counts / 2) / len(categories)
    return np.floor(middles * GROUPS).astype(np.int64)[numbers]


def normalised_information(left: NDArray[np.float32], right: NDArray[np.float32]) -> Floats:
    """I(a; b) / max(H(a), H(b)) for each pair of latents, from indicators (samples, latents, groups).

    Each entropy is corrected for the number of its occupied cells k by (k - 1) / 2n (Miller & Madow 1955): without
    it, latents that have nothing in common would seem to share information.
    """
    samples = len(left)
    counts = left.reshape(samples, -1).T @ right.reshape(samples, -1)  # one product for all pairs of latents
    cells = counts.reshape(left.shape[1], GROUPS, right.shape[1], GROUPS).swapaxes(1, 2)
    joint = _entropies(cells.reshape(left.shape[1], right.shape[1], GROUPS**2), samples)
    one, other = _entropies(left.sum(axis=0), samples), _entropies(right.sum(axis=0), samples)
    information = np.maximum(one[:, None] + other - joint, 0.0)
    largest = np.maximum(one[:, None], other)
    return np.divide(information, largest, out=np.zeros_like(information), where=largest > 0)


def _indicators(model: Whole) -> NDArray[np.float32]:
    return (model[:, :, None] == np.arange(GROUPS)).astype(np.float32)  # (samples, latents, groups)


def _entropies(counts: NDArray[np.float32], samples: int) -> Floats:
    """Corrected entropy in nats of the counts along the last axis."""
    whole = np.arange(samples + 1)
    surprise = whole * np.log(np.maximum(whole, 1))  # n log n, looked up: counts repeat
    entropy = np.log(samples) - surprise[counts.astype(np.intp)].sum(axis=-1) / samples
    return entropy + (np.count_nonzero(counts, axis=-1) - 1) / (2 * samples)
