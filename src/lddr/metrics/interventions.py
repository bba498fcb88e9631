"""Scores from images that share a factor: BetaVAE, FactorVAE and IRS."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from lddr.data.factors import FactorSpace, FactorTable
from lddr.errors import UserError
from lddr.metrics.information import Floats, Whole, as_codes, checked, in_column
from lddr.metrics.metric import Count, Draws, NotNegative, Result, Samples, SampleSet, Share, UndefinedError, metric

SLICE = 500  # points looked up at a time: 500 x 64 pairs of 10 numbers are 5 MB


def holdable(space: FactorSpace, at_least: int) -> list[int]:
    """Return the factors that can be held while others vary: with two values or more, and two images per value."""
    found = [factor for factor in range(len(space.factors)) if 1 < len(occurring(space, factor)) <= space.size // 2]
    if len(found) < at_least:
        factors = "factor" if at_least == 1 else "factors"
        raise UndefinedError(
            f"at least {at_least} {factors} with two values or more, each in several images, must exist to be held; "
            f"the factors here are: {space} ({space.size} images)"
        )
    return found


def occurring(space: FactorSpace, factor: int) -> Whole:
    """Return the values of a factor that some image has: in a table, a bin or a value may be empty."""
    return np.unique(space.rows[:, factor]) if isinstance(space, FactorTable) else np.arange(space.sizes[factor])


def held_draws(
    space: FactorSpace, generator: np.random.Generator, points: Mapping[str, int], shape: tuple[int, ...], together: int
) -> Draws:
    """Sample points (*shape, together) that each hold one random factor; the part "train 3" holds factor 3."""
    factors, draws = holdable(space, at_least=2), {}
    for part, wanted in points.items():
        counts = generator.multinomial(wanted, np.full(len(factors), 1 / len(factors)))
        for factor, count in zip(factors, counts.tolist(), strict=True):
            if count:  # the value is that of a random image, so that it occurs
                values = space.factors_of(space.sample(generator, (count, *shape)))[..., factor]
                shared = np.repeat(values[..., None], together, axis=-1)
                draws[f"{part} {factor}"] = space.sample_with(generator, factor, shared)
    return draws


def held_samples(samples: Samples, part: str) -> dict[int, SampleSet]:
    """Return the samples of a part, "train 0", "train 2" …, by the number of the factor held."""
    names = {name: name.removeprefix(f"{part} ") for name in samples if name.startswith(f"{part} ")}
    return {int(factor): samples[name] for name, factor in names.items()}


def summarised(samples: Samples, part: str, summary: Callable[[Floats], Floats]) -> tuple[Floats, Whole]:
    """Summarise the codes of every point, (points, latents), slice by slice, and return the factor held in each."""
    held = held_samples(samples, part)
    with np.errstate(invalid="ignore", over="ignore"):  # non-finite values are refused later, in a sentence
        rows = [
            summary(sample[start : start + SLICE].codes)
            for sample in held.values()
            for start in range(0, len(sample), SLICE)
        ]
    return np.concatenate(rows), np.repeat(list(held), [len(sample) for sample in held.values()])


def drawn_pairs(
    space: FactorSpace,
    generator: np.random.Generator,
    train_points: Count = 10_000,
    test_points: Count = 5_000,
    pairs: Count = 64,
) -> Draws:
    """Sample pairs of images that share a factor."""
    return held_draws(space, generator, {"train": train_points, "test": test_points}, (pairs,), together=2)


def differences(samples: Samples) -> list[Any]:
    """Return the mean absolute differences of the sampled pairs, and the factor held in each."""

    def mean_difference(pairs: Floats) -> Floats:  # (points, pairs, 2, latents) → (points, latents)
        return np.abs(pairs[:, :, 0] - pairs[:, :, 1]).mean(axis=1)

    return [*summarised(samples, "train", mean_difference), *summarised(samples, "test", mean_difference)]


@dataclass(frozen=True)
class BetaVaeResult(Result):
    """The accuracy on test points and on training points, and whether the classifier converged."""

    train_accuracy: float
    converged: bool


@metric("beta_vae", "BetaVAE", seconds=2, draw=drawn_pairs, inputs=differences)
def beta_vae_score(
    differences_train: ArrayLike,
    held_train: ArrayLike,
    differences_test: ArrayLike,
    held_test: ArrayLike,
    max_iterations: Count = 10_000,
) -> BetaVaeResult:
    """Accuracy of predicting which factor pairs of images share, from the mean difference of their codes.

    Higgins et al. (2017). The classifier is scikit-learn's default (L2 with C = 1). Its loss has one minimum, so that
    more iterations than the default of 100 only make sure that it is reached; `converged` is false if latents differ
    so much in scale (ten thousand times and more) that even these are too few.

    Parameters
    ----------
    differences_train, differences_test : array (points, latents)
        The mean of |code of one image - code of the other| over pairs that share one factor.
    held_train, held_test : array (points,)
        The number of that factor.
    max_iterations : int
        Largest number of iterations of the solver.

    Returns
    -------
    BetaVaeResult
        The score, `train_accuracy` and `converged`.

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import beta_vae_score
    >>> held = np.arange(200) % 2
    >>> differences = 1 - np.eye(2)[held]  # the latent of the held factor does not change
    >>> beta_vae_score(differences, held, differences, held).score
    1.0
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    train, train_labels = checked(differences_train, in_column(held_train))
    test, test_labels = checked(differences_test, in_column(held_test))
    if len(np.unique(train_labels)) < 2:
        raise UndefinedError("the BetaVAE score classifies held factors, but all training points hold the same one")
    classifier = LogisticRegression(max_iter=max_iterations, random_state=0)
    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always", ConvergenceWarning)  # reported in the result instead
        classifier.fit(train, train_labels[:, 0])
    converged = not any(issubclass(one.category, ConvergenceWarning) for one in complaints)
    accuracies = [float(classifier.score(x, y[:, 0])) for x, y in ((test, test_labels), (train, train_labels))]
    sizes = {"train_points": len(train), "test_points": len(test)}
    return BetaVaeResult(accuracies[0], accuracies[1], converged, settings=sizes)


Several = Annotated[int, {"at_least": 2}]  # one has no variance

TIES = (
    "variances are in 64 bits, and the first of latents with equal ones wins; the published code has them in 32 bits, "
    "where rounding decides: up to 0.03 where two latents are constant while a factor is held"
)


def drawn_groups(
    space: FactorSpace,
    generator: np.random.Generator,
    samples: Several = 10_000,
    train_votes: Count = 10_000,
    test_votes: Count = 5_000,
    images: Several = 64,
) -> Draws:
    """Sample groups of images that share a factor, and a plain sample."""
    points = {"train": train_votes, "test": test_votes}
    groups = held_draws(space, generator, points, (), together=images)
    return groups | {"samples": space.sample(generator, samples)}


def variance(codes: Floats) -> Floats:
    """Return the unbiased variance over images: (…, images, latents) → (…, latents)."""
    return codes.var(axis=-2, ddof=1)


def variances_of(samples: Samples) -> list[Any]:
    """Return the variances of the sample and of the sampled groups, and the factor held in each."""
    values, factors = checked(samples["samples"].codes, samples["samples"].factors)
    groups = *summarised(samples, "train", variance), *summarised(samples, "test", variance)
    return [variance(values), *groups, factors.shape[1]]


@dataclass(frozen=True)
class FactorVaeResult(Result):
    """The accuracy on test and on training votes, the training votes (latents, factors), and how many latents vary."""

    train_accuracy: float
    votes: Whole
    active_latents: int
    ties: str = TIES


@metric("factor_vae", "FactorVAE", draw=drawn_groups, inputs=variances_of)
def factor_vae_score(
    variances: ArrayLike,
    variances_train: ArrayLike,
    held_train: ArrayLike,
    variances_test: ArrayLike,
    held_test: ArrayLike,
    num_factors: int | None = None,
    min_std: NotNegative = 0.05,
) -> FactorVaeResult:
    """Accuracy of a majority vote: the latent that varies least stands for the factor it won most training votes of.

    Kim & Mnih (2018). A vote goes to the latent with the smallest ratio of its variance among images that share a
    factor to its variance over the dataset.

    Parameters
    ----------
    variances : array (latents,)
        The variance of every latent over the dataset.
    variances_train, variances_test : array (votes, latents)
        The variances over images that share a factor.
    held_train, held_test : array (votes,)
        The number of that factor.
    num_factors : int, optional
        The number of factors; by default, the largest held number plus one.
    min_std : float
        Latents with a smaller standard deviation over the dataset get no votes; the score is 0 if all have.

    Returns
    -------
    FactorVaeResult
        The score, `train_accuracy`, the training `votes` (latents, factors) and `active_latents`.

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import factor_vae_score
    >>> held = np.arange(200) % 2
    >>> variances = 1 - np.eye(2)[held]  # the latent of the held factor does not vary
    >>> factor_vae_score([1.0, 1.0], variances, held, variances, held).score
    1.0
    """
    train, train_labels = checked(variances_train, in_column(held_train))
    test, test_labels = checked(variances_test, in_column(held_test))
    scale = as_codes(variances)  # (latents,)
    if scale.shape != train.shape[1:] or train.shape[1:] != test.shape[1:]:
        raise UserError(
            f"expected the variances of as many latents everywhere, got {scale.shape}, {train.shape} and {test.shape}"
        )
    active = (np.sqrt(scale) >= min_std) & (scale > 0)
    width = num_factors or int(max(train_labels.max(), test_labels.max())) + 1
    votes = np.zeros((2, len(active), width), np.int64)  # how often each latent won while each factor was held
    for won, local, labels in zip(votes, (train, test), (train_labels, test_labels), strict=True):
        if active.any():
            ratios = np.where(active, local / np.where(active, scale, 1), np.inf)
            np.add.at(won, (ratios.argmin(axis=1), labels[:, 0]), 1)
    right = np.take_along_axis(votes, votes[0].argmax(axis=1)[None, :, None], axis=2).sum(axis=(1, 2))
    train_accuracy, score = map(float, right / np.maximum(votes.sum(axis=(1, 2)), 1))
    sizes = {"train_votes": len(train), "test_votes": len(test)}
    return FactorVaeResult(score, train_accuracy, votes[0], int(active.sum()), settings=sizes)


def drawn_values(
    space: FactorSpace, generator: np.random.Generator, samples: Count = 10_000, max_values: Count = 50
) -> Draws:
    """Sample about as many images for each factor, equally many of each value; the part "factor 3" holds factor 3."""
    draws: Draws = {}
    for factor in holdable(space, at_least=1):
        values = occurring(space, factor)
        chosen = np.linspace(0, len(values) - 1, min(len(values), max_values)).round()  # evenly, if there are too many
        values = values[chosen.astype(np.int64)]
        draws[f"factor {factor}"] = space.sample_with(generator, factor, np.repeat(values, -(-samples // len(values))))
    return draws


def codes_by_factor(samples: Samples) -> list[Any]:
    """Return the codes and the held values of every factor that could be held."""
    held = held_samples(samples, "factor")
    factors = [sample.factors for sample in held.values()]
    values = [rows[:, factor] for factor, rows in zip(held, factors, strict=True)]
    return [[sample.codes for sample in held.values()], values, list(held), factors[0].shape[-1]]


@dataclass(frozen=True)
class IrsResult(Result):
    """The weighted mean, the score and the weight of every latent, and the robustness (latents, factors) behind it."""

    per_latent: tuple[float, ...]
    weights: tuple[float, ...]
    robustness: Floats


@metric("irs", "IRS", draw=drawn_values, inputs=codes_by_factor)
def irs(
    codes: Sequence[ArrayLike],
    values: Sequence[ArrayLike],
    held: Sequence[int] | None = None,
    num_factors: int | None = None,
    quantile: Share = 0.99,
) -> IrsResult:
    """Interventional robustness: how little a latent moves when all factors but its own change; mean over latents.

    Suter et al. (2019). The robustness of a latent z, if g is held, is 1 - E_g[Q(|z - E[z|g]|)] / max |z - E[z]|, with
    Q the quantile; it is 0 for a latent that never varies and for a factor that was set to one value only, or never.
    The mean is weighted by the largest deviations.

    Parameters
    ----------
    codes : sequence of arrays (samples, latents)
        For every held factor the codes of images in which it was set, and the other factors left free.
    values : sequence of arrays (samples,)
        The values that it was set to.
    held : sequence of int, optional
        The numbers of the held factors; by default, all from 0.
    num_factors : int, optional
        The number of factors; by default, that of the held ones.
    quantile : float
        Of the deviations; 1 is their maximum.

    Returns
    -------
    IrsResult
        The score, `per_latent`, `weights` and the `robustness` (latents, factors).

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import irs
    >>> factors = np.random.default_rng(0).integers(4, size=(2_000, 2))
    >>> irs([factors, factors], [factors[:, 0], factors[:, 1]]).score
    1.0
    """
    if len(codes) != len(values) or not len(codes):
        raise UserError(f"expected codes and values for every factor, got them for {len(codes)} and {len(values)}")
    given = [checked(one, in_column(value)) for one, value in zip(codes, values, strict=True)]
    everything = np.concatenate([one for one, _ in given])
    moves = np.ptp(everything, axis=0) > 0  # (latents,); rounding gives a constant latent a deviation from its mean
    largest = np.where(moves, np.abs(everything - everything.mean(axis=0)).max(axis=0), 0.0)
    deviations = np.stack([expected_deviation(one, value[:, 0], quantile) for one, value in given], axis=1)
    shares = np.divide(deviations, largest[:, None], out=np.ones_like(deviations), where=largest[:, None] > 0)
    varied = np.array([len(np.unique(value)) > 1 for _, value in given])
    found = np.where(varied, 1 - shares, 0.0)
    robustness = np.zeros((len(found), num_factors or len(given)))
    robustness[:, range(len(given)) if held is None else held] = found
    scores = found.max(axis=1)
    score = float(np.average(scores, weights=largest)) if largest.any() else 0.0
    sizes = {"images": [len(one) for one, _ in given]}
    return IrsResult(score, tuple(scores.tolist()), tuple(largest.tolist()), robustness, settings=sizes)


def expected_deviation(codes: Floats, values: Whole, quantile: float) -> Floats:
    """Return the quantile of the distance from the mean of images with the same value, mean over values."""
    order = np.argsort(values, kind="stable")
    starts = np.unique(values[order], return_index=True)[1]
    groups = np.split(codes[order], starts[1:])
    quantiles = [np.quantile(np.abs(group - group.mean(axis=0)), quantile, axis=0) for group in groups]
    return np.average(quantiles, axis=0, weights=[len(group) for group in groups])
