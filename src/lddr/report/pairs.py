"""Gaussian against discrete: models with the same objective, and which has the better median how often."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from lddr.metrics.metric import SIX_METRICS, UndefinedError
from lddr.models import models
from lddr.report.groups import Group, scores_of
from lddr.report.palette import families, goals
from lddr.report.paper import GAINS
from lddr.report.titles import few_mark, model_title
from lddr.runs.index import Run

Pair = tuple[str, str]
FEWEST = 2  # runs of each


def pairs() -> list[Pair]:
    """Every continuous model with every discrete one of the same objective, those first whose gains the paper tells."""
    kinds = product(goals(), families(discrete=False), families(discrete=True))
    found = [(models.name_of(left, goal), models.name_of(right, goal)) for goal, left, right in kinds]
    return sorted(found, key=lambda pair: pair[1] not in GAINS or models[pair[0]].latent != "gaussian")


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
    def fewest(self) -> int:
        """How many runs a model has at least."""
        return min(len(self.gaussian), len(self.discrete))

    @property
    def is_won(self) -> bool:
        """Whether the discrete model has the larger median."""
        return self.medians[1] > self.medians[0]


def case_of(dataset: str, runs: Sequence[Run], pair: Pair, metric: str) -> Case | None:
    """The runs of two models by one metric; None if there are too few."""
    scores = [tuple(scores_of([run for run in runs if run.value("model") == model], metric)) for model in pair]
    return Case(dataset, metric, pair, *scores) if min(map(len, scores)) >= FEWEST else None


def cases(groups: Sequence[Group], pair: Pair, metrics: Sequence[str] = SIX_METRICS) -> list[Case]:
    """Every dataset and metric for which both models have runs."""
    found = (case_of(group.title, group.unsupervised(), pair, metric) for group in groups for metric in metrics)
    return [case for case in found if case]


def compared(groups: Sequence[Group], wanted: Sequence[Pair], metrics: Sequence[str]) -> list[list[Case]]:
    """The cases of every pair that has some; a sentence if none has."""
    found = [some for pair in wanted if (some := cases(groups, pair, metrics))]
    if not found:
        both = " or ".join(f"{model_title(left)} and {model_title(right)}" for left, right in wanted[:2])
        raise UndefinedError(f"there are no two runs each of {both} with the same metric on one dataset")
    return found


def wins(found: Sequence[Case]) -> str:
    """How often the discrete model is ahead."""
    marked = few_mark(min(case.fewest for case in found))
    return f"better in {sum(case.is_won for case in found)} of {len(found)} cases{marked}"
