"""The examples in the docstrings of models run and print what they say."""

import doctest
from importlib import import_module

import pytest

from lddr.parts import latents, likelihoods, objectives

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


@pytest.mark.parametrize("parts", [latents, objectives, likelihoods], ids=lambda parts: parts.kind)
def test_the_docstring_of_a_part_describes_its_settings(parts):
    for name in parts:
        text = parts[name].cls.__doc__
        assert all(f"{setting} : " in text and rule.help in text for setting, rule in parts[name].rules.items()), name
