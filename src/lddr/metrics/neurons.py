"""Single-neuron classification (SNC) and neuron knockout (NK), after Mahon et al. (2024) and their code."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lddr.metrics.information import Floats, Whole, checked_parts, mutual_information_matrix
from lddr.metrics.metric import Count, Positive, Progress, Result, Seed, metric
from lddr.metrics.probes import fit_in_parallel, score_on_test, standardised, varying_factors

NO_LATENT = -1  # the match of a factor that no latent is left for, or that does not vary
BATCH = 4096


@dataclass(frozen=True)
class SncResult(Result):
    """The mean test accuracy, that of every factor, what chance gives, and the latent matched to each factor (or -1).

    Means are over the factors that vary in training; the accuracy of the others is 0.
    """

    per_factor: tuple[float, ...]
    chance: float  # mean share of the most frequent value
    latents: tuple[int, ...]


@metric("snc", "Single-neuron classification", parts={"train": 10_000, "test": 5_000})
def snc(codes_train: ArrayLike, factors_train: ArrayLike, codes_test: ArrayLike, factors_test: ArrayLike) -> SncResult:
    """Test accuracy of predicting each factor from the bin of one latent, mean over the factors that vary.

    Mahon et al. (2024). A latent has as many equally filled bins as the factor has values, each of which stands for
    another value. Factors and latents are matched one to one by the largest sum of mutual information, bins and values
    by the largest training accuracy. If latents are too few, the most frequent value is predicted for the factors left.

    Parameters
    ----------
    codes_train, factors_train, codes_test, factors_test : array
        (samples, latents), and whole numbers (samples, factors), to train and to test with.

    Returns
    -------
    SncResult
        The score, `per_factor`, the `latents` matched to the factors, and the accuracy by `chance`.

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import snc
    >>> factors = np.indices((4, 3)).reshape(2, -1).T.repeat(200, axis=0)
    >>> snc(factors * 0.5, factors, factors * 0.5, factors).score
    1.0
    """
    from scipy.stats import mode

    train, truth, test, asked = checked_parts(codes_train, factors_train, codes_test, factors_test)
    matched, varies = matched_latents(train, truth)
    chances = np.where(np.ptp(truth, axis=0) > 0, (asked == mode(truth, axis=0).mode).mean(axis=0), 0.0)
    accuracies = chances.copy()
    for factor in np.flatnonzero(matched != NO_LATENT):
        latent = matched[factor]
        columns = train[:, latent], truth[:, factor], test[:, latent], asked[:, factor]
        accuracies[factor] = _accuracy_of_bins(*columns)
    return SncResult(
        float(accuracies[varies].mean()),
        tuple(accuracies.tolist()),
        float(chances[varies].mean()),
        tuple(matched.tolist()),
        settings={"train": len(train), "test": len(test)},
    )


def matched_latents(codes: Floats, factors: Whole) -> tuple[Whole, Whole]:
    """Return the latent of each factor, (factors,), -1 where there is none; and the factors that vary."""
    from scipy.optimize import linear_sum_assignment

    varies = varying_factors(factors, "single neurons need")
    columns = []
    for factor in varies:
        edges = equally_filled(codes, len(np.unique(factors[:, factor])))
        bins = np.stack([np.searchsorted(*pair, side="right") for pair in zip(edges.T, codes.T, strict=True)], axis=1)
        columns.append(mutual_information_matrix(bins, factors[:, [factor]])[:, 0])
    latents, places = linear_sum_assignment(np.stack(columns, axis=1), maximize=True)
    matched = np.full(factors.shape[1], NO_LATENT)
    matched[varies[places]] = latents
    return matched, varies


def equally_filled(codes: Floats, bins: int) -> Floats:
    """Return the inner edges of equally filled bins: (samples, …) → (bins - 1, …)."""
    starts = np.arange(1, bins) * len(codes) // bins
    return np.sort(codes, axis=0)[starts]


def _accuracy_of_bins(train: Floats, labels: Whole, test: Floats, asked: Whole) -> float:
    """Return the test accuracy if each bin of a latent stands for the value that it was matched with in training."""
    from scipy.optimize import linear_sum_assignment

    values, numbers = np.unique(labels, return_inverse=True)
    edges = equally_filled(train, len(values))
    counts = np.zeros((len(values), len(values)))
    np.add.at(counts, (np.searchsorted(edges, train, side="right"), numbers), 1)
    value_of_bin = values[linear_sum_assignment(counts, maximize=True)[1]]
    return float(np.mean(value_of_bin[np.searchsorted(edges, test, side="right")] == asked))


@dataclass(frozen=True)
class NkResult(Result):
    """The mean drop of the test accuracy, that of every factor, both accuracies, and the latent that was removed."""

    per_factor: tuple[float, ...]
    accuracies: tuple[float, ...]  # with all latents
    accuracies_without: tuple[float, ...]  # without the matched one
    latents: tuple[int, ...]


@metric("nk", "Neuron knockout", seconds=60, parts={"train": 10_000, "test": 5_000})
def nk(
    codes_train: ArrayLike,
    factors_train: ArrayLike,
    codes_test: ArrayLike,
    factors_test: ArrayLike,
    width: Count = 256,
    learning_rate: Positive = 0.01,
    epochs: Count = 75,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> NkResult:
    """Drop of an MLP's test accuracy if the latent of the factor is removed, mean over the factors that vary.

    Mahon et al. (2024). Latents are matched with factors as for `snc`. The drop is at most 1 - chance, about 0 if other
    latents encode the factor, too, and noise can bring it below 0. The MLP is scikit-learn's, with the authors' hidden
    layer, Adam and batches of 4,096; their decay of the learning rate is left out, and codes are standardised.

    Parameters
    ----------
    codes_train, factors_train, codes_test, factors_test : array
        (samples, latents), and whole numbers (samples, factors), to train and to test with.
    width, learning_rate, epochs : int, float, int
        Of the MLP: units of its hidden layer, Adam's learning rate, and the largest number of epochs.
    seed : int
        Of its initial weights and batches.
    progress : callable, optional
        Called with the share of the work that has just been finished.

    Returns
    -------
    NkResult
        The score, `per_factor`, `accuracies`, `accuracies_without`, and the `latents` matched to the factors.

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import nk
    >>> factors = np.indices((2, 2)).reshape(2, -1).T.repeat(250, axis=0)
    >>> round(nk(factors * 1.0, factors, factors * 1.0, factors, width=16).score, 1)
    0.5
    """
    from sklearn.dummy import DummyClassifier
    from sklearn.neural_network import MLPClassifier

    train, truth, test, asked = checked_parts(codes_train, factors_train, codes_test, factors_test)
    matched, varies = matched_latents(train, truth)
    scaled, scaled_test = standardised(train, test)
    options = {"learning_rate_init": learning_rate, "max_iter": epochs, "random_state": seed, "alpha": 0.0}
    network = MLPClassifier((width,), batch_size=min(BATCH, len(train)), **options)
    without_latents = DummyClassifier(strategy="most_frequent")
    tasks, costs, factors = [], [], np.flatnonzero(matched != NO_LATENT)
    for factor in factors:
        everything = np.arange(train.shape[1])
        for kept in (everything, np.delete(everything, matched[factor])):
            model = network if len(kept) else without_latents
            tasks.append((model, scaled[:, kept], truth[:, factor], scaled_test[:, kept], asked[:, factor]))
            costs.append(float(len(np.unique(truth[:, factor]))))
    accuracies, without = np.zeros((2, len(matched)))
    found = fit_in_parallel(score_on_test, tasks, costs, progress)
    accuracies[factors], without[factors] = found[::2], found[1::2]
    drops = accuracies - without
    return NkResult(
        float(drops[varies].mean()),
        tuple(drops.tolist()),
        tuple(accuracies.tolist()),
        tuple(without.tolist()),
        tuple(matched.tolist()),
        settings={"train": len(train), "test": len(test)},
    )
