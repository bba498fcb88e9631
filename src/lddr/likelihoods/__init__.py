"""Likelihoods p(x | z): how the outputs of a decoder become pixels, and what a reconstruction costs in nats."""

from typing import Any

from lddr.parts import Parts

likelihoods = Parts("likelihood", "lddr.likelihoods")


def __getattr__(name: str) -> Any:
    return likelihoods.class_named(name)
