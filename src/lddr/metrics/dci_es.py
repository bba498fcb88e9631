"""DCI-ES: explicitness and size, from the losses of probes of growing capacity (Eastwood et al. 2023)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.errors import UserError
from lddr.metrics.information import Floats, checked_parts
from lddr.metrics.metric import Count, Progress, Result, Seed, Share, UndefinedError, metric
from lddr.metrics.probes import fit_in_parallel, score_on_test, standardised

Probe = Literal["mlp", "trees"]
WIDTHS = (0, 8, 16, 32, 64, 128)  # of both hidden layers; 0 is a linear probe
DEPTHS = (1, 2, 3, 4, 8, 12, 16, 32)
BATCH = 128


@dataclass(frozen=True)
class DciEsResult(Result):
    """The mean explicitness, that of every factor, the size, and the loss-capacity curves behind them.

    `capacities` and `losses` are (factors, probes); the rows of factors that do not vary are 0.
    """

    per_factor: tuple[float, ...]
    size: float  # factors that vary / latents
    informativeness: float  # 1 - smallest loss / baseline loss, mean over factors
    capacities: Floats
    losses: Floats


@metric("dci_es", "DCI-ES", seconds=40, parts={"train": 10_000, "test": 5_000})
def dci_es(
    codes_train: ArrayLike,
    factors_train: ArrayLike,
    codes_test: ArrayLike,
    factors_test: ArrayLike,
    probe: Probe = "mlp",
    widths: Annotated[Sequence[int], {"at_least": 0}] = WIDTHS,
    depths: Annotated[Sequence[int], {"at_least": 1}] = DEPTHS,
    categorical: Annotated[Sequence[int], {"at_least": 0}] = (),
    trees: Count = 100,
    epochs: Count = 40,
    least_informative: Share = 0.05,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> DciEsResult:
    """Explicitness: 1 - 2 · area under a probe's loss-capacity curve, above its minimum; also the size.

    Eastwood et al. (2023). With y the running minimum of the test loss over the capacity x, and linear interpolation,
    E = 1 - 2 ∫ (y - min y) dx / ((max x - min x) · baseline loss): 1 if the smallest probe is as good as any, 0 if the
    loss decreases linearly from the baseline to 0, -1 at worst. The capacity is the logarithm of the number of
    parameters of an MLP with two hidden layers (linear if their width is 0), or the depth of a random forest. The loss
    is 1 - R² of the factor's numbers, with baseline 1; for categorical factors 1 - accuracy, with the baseline of the
    most frequent value. The formula gives 1 for noise, where all probes are equally bad: here, factors that no probe
    predicts score 0, see `least_informative`.

    Parameters
    ----------
    codes_train, factors_train, codes_test, factors_test : array
        (samples, latents), and whole numbers (samples, factors), to train and to test with.
    probe : {"mlp", "trees"}
        Which probes.
    widths, depths : tuple of int
        Their hidden layers, or the depths of their trees, at least two; the paper goes up to 3,603 and 32.
    categorical : tuple of int
        The places of the factors, from 0, whose values have no order; the others are predicted as numbers.
    trees, epochs : int
        Trees of a forest; epochs of an MLP.
    least_informative : float
        Factors with less informativeness score 0; 0 for the published formula.
    seed : int
        Of the probes.
    progress : callable, optional
        Called with the share of the work that has just been finished.

    Returns
    -------
    DciEsResult
        The score, `per_factor`, `size`, `informativeness`, `capacities` and `losses`.

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import dci_es
    >>> factors = np.random.default_rng(0).integers(5, size=(2_000, 2))
    >>> codes = factors @ [[1.0, 1.0], [1.0, -1.0]]
    >>> found = dci_es(codes[:1_000], factors[:1_000], codes[1_000:], factors[1_000:], widths=(0, 4))
    >>> round(found.score, 2), found.size
    (1.0, 1.0)
    """
    from scipy.stats import mode

    train, truth, test, asked = checked_parts(codes_train, factors_train, codes_test, factors_test)
    sizes = sorted(set(widths if probe == "mlp" else depths))
    varies = np.flatnonzero((np.ptp(truth, axis=0) > 0) & (np.ptp(asked, axis=0) > 0))
    if len(sizes) < 2:
        raise UserError(f"DCI-ES needs probes of at least two capacities, not {list(sizes)}")
    if categorical and max(categorical) >= truth.shape[1]:
        raise UserError(f"factor {max(categorical)} cannot be categorical: there are {truth.shape[1]}, from 0")
    if not len(varies):
        raise UndefinedError("DCI-ES needs a factor that varies in the train and the test sample")
    kinds = np.isin(np.arange(truth.shape[1]), categorical)
    scaled, scaled_test = standardised(train, test)
    tasks, costs = [], []
    for k in varies:
        targets: tuple[NDArray, NDArray] = truth[:, k], asked[:, k]
        if not kinds[k]:  # an MLP learns numbers of variance 1 best
            mean, scale = truth[:, k].mean(), truth[:, k].std()
            targets = (truth[:, k] - mean) / scale, (asked[:, k] - mean) / scale
        for size in sizes:
            model = _model(bool(kinds[k]), size, probe, trees, epochs, seed, min(BATCH, len(train)))
            tasks.append((model, scaled, targets[0], scaled_test, targets[1]))
            costs.append(1.0 + size)
    losses, capacities = np.zeros((2, truth.shape[1], len(sizes)))
    scores = fit_in_parallel(score_on_test, tasks, costs, progress)
    losses[varies] = 1 - np.reshape(scores, (len(varies), len(sizes)))
    per_factor, informativeness = np.zeros((2, truth.shape[1]))
    for k in varies:
        outputs = len(np.unique(truth[:, k])) if kinds[k] else 1
        capacities[k] = [_capacity(probe, train.shape[1], size, outputs) for size in sizes]
        baseline = 1.0
        if kinds[k]:  # the test error of the most frequent value; a sample of one value is never all wrong
            baseline = max(float(np.mean(asked[:, k] != mode(truth[:, k]).mode)), 1 / len(asked))
        informativeness[k] = max(0.0, 1 - losses[k].min() / baseline)
        if informativeness[k] >= least_informative:
            per_factor[k] = explicitness_of_curve(capacities[k], losses[k], baseline)
    return DciEsResult(
        float(per_factor[varies].mean()),
        tuple(per_factor.tolist()),
        len(varies) / train.shape[1],
        float(informativeness[varies].mean()),
        capacities,
        losses,
        settings={"train": len(train), "test": len(test)},
    )


def explicitness_of_curve(capacities: Floats, losses: Floats, baseline: float) -> float:
    """Return E from losses at growing capacities, (probes,) each."""
    excess = np.minimum.accumulate(losses) - losses.min()
    area = ((excess[:-1] + excess[1:]) / 2) @ np.diff(capacities)
    return float(1 - 2 * area / ((capacities[-1] - capacities[0]) * baseline))


def _capacity(probe: Probe, latents: int, size: int, outputs: int) -> float:
    """Return the depth of the trees, or the logarithm of the number of parameters of the MLP."""
    if probe == "trees":
        return float(size)
    units = (latents, size, size, outputs) if size else (latents, outputs)
    return float(np.log(sum((before + 1) * after for before, after in pairwise(units))))


def _model(is_categorical: bool, size: int, probe: Probe, trees: int, epochs: int, seed: int, batch: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    if probe == "trees":
        forest = RandomForestClassifier if is_categorical else RandomForestRegressor
        return forest(trees, max_depth=size, random_state=seed)
    if size == 0:
        return LogisticRegression(C=np.inf, max_iter=1_000) if is_categorical else LinearRegression()
    network = MLPClassifier if is_categorical else MLPRegressor
    options = {"max_iter": epochs, "batch_size": batch, "random_state": seed, "alpha": 0.0}
    return network(hidden_layer_sizes=(size, size), **options)
