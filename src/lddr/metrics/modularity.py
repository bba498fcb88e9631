"""Modularity: a latent informs of one factor only; explicitness: a linear map finds it (Ridgeway & Mozer 2018)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lddr.metrics.fitting import side_by_side
from lddr.metrics.information import Floats, Whole, checked, checked_parts, discretised, mutual_information_matrix
from lddr.metrics.metric import Metric, Result, Sample, UndefinedError, metrics
from lddr.metrics.probe import probabilities, standardised

ROUNDING = 1e-12  # nats: less than this is no information, and its shares are no shares


@dataclass(frozen=True)
class ModularityResult(Result):
    """The mean, the modularity of every latent, and the mutual information (latents, factors) in nats behind it."""

    per_latent: tuple[float, ...]
    mutual_information: Floats


def modularity(codes: ArrayLike, factors: ArrayLike, num_bins: int = 20) -> ModularityResult:
    """1 - Σ I² of the other factors / (I² of the best · (F - 1)), mean over all latents.

    F counts the factors that vary. A latent without any information counts as 0, as published; with F = 1 there is no
    other factor, and an informative latent counts as 1. Noise does not score 0: its spurious I have a largest one, too.
    """
    values, truth = checked(codes, factors)
    information = mutual_information_matrix(discretised(values, num_bins), truth)
    per_latent = modularities(information[:, np.ptp(truth, axis=0) > 0])
    settings = {"num_bins": num_bins, "samples": len(values)}
    return ModularityResult(float(per_latent.mean()), tuple(per_latent.tolist()), information, settings=settings)


def modularities(information: Floats) -> Floats:
    """(latents, factors) → (latents)."""
    squares = np.where(information > ROUNDING, information, 0.0) ** 2
    best = squares.max(axis=1, initial=0.0)
    others = max(squares.shape[1] - 1, 1)
    deviation = np.divide(squares.sum(axis=1) - best, best * others, out=np.ones_like(best), where=best > 0)
    return 1 - deviation


@metrics.register("modularity")
@dataclass(frozen=True)
class Modularity(Metric):
    """The modularity of one sample."""

    title = "Modularity"
    samples: int = 10_000
    num_bins: int = 20

    @property
    def parts(self) -> dict[str, int]:
        return {"sample": self.samples}

    def score(self, samples: Mapping[str, Sample]) -> ModularityResult:
        sample = samples["sample"]
        return modularity(sample.codes, sample.factors, self.num_bins)


@dataclass(frozen=True)
class ExplicitnessResult(Result):
    """2·AUC - 1, mean over the factors that vary, that of every factor (0 for a constant one), and the mean AUC."""

    per_factor: tuple[float, ...]
    area: float


def explicitness(
    codes_train: ArrayLike,
    factors_train: ArrayLike,
    codes_test: ArrayLike,
    factors_test: ArrayLike,
    regularisation: float = 1.0,
    iterations: int = 100,
) -> ExplicitnessResult:
    """2·AUC - 1 of "this value or another one", mean over the values of a factor, then over factors.

    The scores come from one multinomial logistic regression per factor on the standardised codes, as in
    disentanglement_lib. Its code and the authors' report the AUC itself, for which chance is ½: that is `area`; on the
    scale of `score` chance is 0 (Carbonneau et al. 2022). A value that training never saw is told at chance.
    """
    train, truth, test, asked = checked_parts(codes_train, factors_train, codes_test, factors_test)
    scaled = standardised(train, test)
    tasks = [(*scaled, left, right, regularisation, iterations) for left, right in zip(truth.T, asked.T, strict=True)]
    areas = side_by_side(_area, tasks, costs=[len(np.unique(column)) for column in truth.T])
    defined = [area for area in areas if area is not None]
    if not defined:
        raise UndefinedError("explicitness needs a factor that varies, and none of them does in the test sample")
    area = float(np.mean(defined))
    settings = {
        "train": len(train),
        "test": len(test),
        "regularisation": regularisation,
        "iterations": iterations,
    }
    per_factor = tuple(0.0 if found is None else 2 * found - 1 for found in areas)
    return ExplicitnessResult(2 * area - 1, per_factor, area, settings=settings)


def _area(
    train: Floats, test: Floats, factor: Whole, asked: Whole, regularisation: float, iterations: int
) -> float | None:
    """Mean area under the ROC curve over the values in the test sample; None if there is one only."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    values = np.unique(asked)
    if len(values) < 2:
        return None
    model = LogisticRegression(C=1 / regularisation if regularisation else np.inf, max_iter=iterations)
    found = probabilities(model, train, factor, test, values)
    return float(np.mean([roc_auc_score(asked == value, found[:, place]) for place, value in enumerate(values)]))


@metrics.register("explicitness")
@dataclass(frozen=True)
class Explicitness(Metric):
    """The explicitness of a test sample, for a linear map fitted to a training sample."""

    title = "Explicitness"
    train: int = 10_000
    test: int = 5_000
    regularisation: float = 1.0
    iterations: int = 100

    @property
    def parts(self) -> dict[str, int]:
        return {"train": self.train, "test": self.test}

    def score(self, samples: Mapping[str, Sample]) -> ExplicitnessResult:
        train, test = samples["train"], samples["test"]
        settings = (self.regularisation, self.iterations)
        return explicitness(train.codes, train.factors, test.codes, test.factors, *settings)
