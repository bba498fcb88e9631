"""The examples in the docstrings of models run and print what they say."""

import doctest
from importlib import import_module

import pytest

MODULES = ["losses", "likelihoods", "vae", "objectives", "latents.categorical", "latents.gaussian", "latents.quantised"]
MODULES += ["latents.von_mises", "objectives.objective", "objectives.elbo", "objectives.total_correlation"]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_docstrings_run(name):
    failed, attempted = doctest.testmod(import_module(f"lddr.{name}"))
    assert failed == 0
    assert attempted > 1
