"""The examples in the docstrings of models run and print what they say."""

import doctest
from importlib import import_module

import pytest

MODULES = ["estimator", "hardware", "likelihoods", "losses", "trained", "vae"]
MODULES += [f"latents.{name}" for name in ("latent", "categorical", "gaussian", "quantised", "von_mises")]
MODULES += [
    "objectives",
    *(f"objectives.{name}" for name in ("objective", "elbo", "pairs", "total_correlation", "tripod")),
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_docstrings_run(name):
    failed, attempted = doctest.testmod(import_module(f"lddr.{name}"))
    assert failed == 0
    assert attempted
