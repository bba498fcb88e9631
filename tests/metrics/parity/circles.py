"""Scores that hold a factor, of representations of `circles`: the plain ones and ours, each with draws of its own."""

import numpy as np

import lddr
from lddr.metrics.metric import metrics
from tests.metrics import published as plain
from tests.metrics.parity import tables

FEW = {"beta_vae": {"pairs": 5}, "factor_vae": {"images": 5}}  # of 64, with which all of these would score 1
POINTS = {"beta_vae": ("train_points", "test_points"), "factor_vae": ("train_votes", "test_votes")}


def sampled(grid, generator, count=10_000, bins=20):
    """A plain sample of circles, with the factors in 20 bins, as disentanglement_lib has them for IRS."""
    drawn = generator.integers(grid.shape[:2], size=(count, 2))
    return grid[tuple(drawn.T)], np.stack([plain.bins_of(factor, bins) for factor in drawn.T], axis=1)


def grid_of(kind):
    """The codes of all circles by x and y."""
    dataset = lddr.load_dataset("circles", 32)
    numbers = np.arange(len(dataset))
    codes = tables.representation(kind)(dataset.images(numbers).astype(np.float32) / 255)
    grid = np.zeros((*dataset.space.sizes, codes.shape[1]), np.float32)
    grid[tuple(dataset.space.factors_of(numbers).T)] = codes
    return grid


def ours_on_circles(name, kind, share=1.0):
    """With a share of the published number of points."""
    points = {key: int(share * metrics[name].settings[key]) for key in POINTS.get(name, ())}
    settings = {name: FEW.get(name, {}) | points}
    dataset = lddr.load_dataset("circles", 32)
    found = lddr.evaluate(dataset, tables.representation(kind), [name], settings=settings, jobs=1, quiet=True)
    return found[name]["score"]


CIRCLES = {  # what, the plain one, how far apart they may be
    "beta_vae": ("BetaVAE, 5 pairs", lambda grid, g: plain.beta_vae(grid, g, pairs=5), 0.03),
    "factor_vae": ("FactorVAE, votes of 5", lambda grid, g: plain.factor_vae(grid, g, images=5), 0.03),
    "irs": ("IRS", lambda grid, g: plain.irs(*sampled(grid, g)), 0.05),
}
