"""Gaussian against discrete: models with the same objective, and which has the better median how often."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lddr.metrics.metric import UndefinedError
from lddr.report.groups import Group, scores_of
from lddr.report.paper import SIX
from lddr.report.titles import model_title
from lddr.runs.index import Run

PAIRS = (  # the same objective with Gaussian and with discrete latents
    ("vae", "dvae"),
    ("factor-vae", "factor-dvae"),
    ("beta-vae", "beta-dvae"),
    ("annealed-vae", "annealed-dvae"),
    ("beta-tcvae", "tc-dvae"),
    ("dip-vae-i", "dip-dvae-i"),
    ("dip-vae-ii", "dip-dvae-ii"),
)
Pair = tuple[str, str]
FEWEST = 2  # runs of each


@dataclass(frozen=True)
class Case:
    """One metric on one dataset: the scores of two models."""

    dataset: str  # its title
    metric: str
    models: Pair
    gaussian: tuple[float, ...]
    discrete: tuple[float, ...]

    @property
    def medians(self) -> tuple[float, float]:
        return float(np.median(self.gaussian)), float(np.median(self.discrete))

    @property
    def gain(self) -> float | None:
        """The improvement of the median, in percent; None over a median of 0."""
        before, after = self.medians
        return 100 * (after / before - 1) if before > 0 else None

    @property
    def is_won(self) -> bool:
        """Whether the discrete model has the larger median."""
        return self.medians[1] > self.medians[0]


def case_of(dataset: str, runs: Sequence[Run], models: Pair, metric: str) -> Case | None:
    """The runs of two models by one metric; None if there are too few."""
    scores = [tuple(scores_of([run for run in runs if run.value("model") == model], metric)) for model in models]
    return Case(dataset, metric, models, *scores) if min(map(len, scores)) >= FEWEST else None


def cases(groups: Sequence[Group], models: Pair, metrics: Sequence[str] = tuple(SIX)) -> list[Case]:
    """Every dataset and metric for which both models have runs."""
    found = (case_of(group.title, group.unsupervised(), models, metric) for group in groups for metric in metrics)
    return [case for case in found if case]


def compared(groups: Sequence[Group], pairs: Sequence[Pair], metrics: Sequence[str]) -> list[list[Case]]:
    """The cases of every pair that has some; a sentence if none has."""
    found = [some for models in pairs if (some := cases(groups, models, metrics))]
    if not found:
        both = " or ".join(f"{model_title(left)} and {model_title(right)}" for left, right in pairs[:2])
        raise UndefinedError(f"there are no two runs each of {both} with the same metric on one dataset")
    return found


def wins(found: Sequence[Case]) -> str:
    """How often the discrete model is ahead."""
    return f"better in {sum(case.is_won for case in found)} of {len(found)} cases"
