"""The selectors: numbers of runs, mostly without labels, by which a model can be chosen."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lddr.data.dataset import stream
from lddr.metrics.information import Floats, Whole
from lddr.runs.index import Run
from lddr.selection.selector import Better, Candidates, Selector, Verdict, mean_rank, selector, selectors

if TYPE_CHECKING:
    from lddr.selection.ranking import Encoded

SIZES = ("num_latents", "num_categories")
LABELS = ("supervision", "labels", "label_seed", "num_categories")
GROUPS = 16  # 64 x 64 categories are too many cells for the 1000 images they are counted on
VOTES, GROUP = 500, 16  # rounds of FactorVAE's score, and images in each
CENTRALITY = "codes that stand for the others' codes (ModelCentrality on dataset images, not on decoded samples)"


def score_selector(
    name: str, column: str, better: Better, summary: str, title: str = "", how: str = "", same: tuple[str, ...] = ()
) -> None:
    """Make a score a selector; `how` says how a run gets the score."""
    missing = f"has no {column}" + (f"; {how}" if how else "")

    def measure(candidates: Candidates) -> list[Verdict]:
        values = [run.number(column) for run in candidates.runs]
        return [missing if value is None else value for value in values]

    selectors.register(name)(Selector(summary, better, "scores", measure, same, title))


HOW = "get it with: lddr evaluate RUN --metrics"
GAP = f"discrete models {HOW} gap"
score_selector("gap", "gap", "lower", "smallest straight-through gap, the paper's", "Gap_ST", GAP)
RELATIVE = "smallest gap, as a share of the reconstruction error"
score_selector("relative", "gap.relative", "lower", RELATIVE, "Gap_ST, relative", GAP)
CONFIDENT = "most confident posterior, all latents"
score_selector("discreteness", "gap.confidence", "higher", CONFIDENT, "confidence", GAP, SIZES)
score_selector("elbo", "elbo", "higher", "largest evidence lower bound, of samples", "ELBO", f"{HOW} elbo")
NOISELESS = "largest ELBO of codes without noise, which is no bound"
score_selector("elbo_noiseless", "elbo_noiseless", "higher", NOISELESS, "ELBO without noise")
score_selector("reconstruction", "reconstruction", "lower", "smallest reconstruction error")
INDEPENDENT = "smallest total correlation of the codes"
score_selector("independence", "unsupervised", "lower", INDEPENDENT, "total correlation", f"{HOW} unsupervised")
APART = "decodings of independently drawn latents that pass for reconstructions"
score_selector("pipe", "pipe", "higher", APART, "PIPE", f"{HOW} pipe")
RISK = "smallest risk on labelled images kept apart"
score_selector("validation", "validation_risk", "lower", RISK, how="only supervised runs do", same=LABELS)


@selector("crispness", "most confident posterior, latents in use", "higher")
def crispness(candidates: Candidates) -> list[Verdict]:
    """The largest posterior probability, mean over images and latents in use: the others are never sure."""
    verdicts, models = encoded_models(candidates, discrete=True)
    for place, model in models.items():
        used = model.active
        verdicts[place] = float(model.confidence[used].mean()) if used.any() else "has no latent in use"  # type: ignore[index]
    return verdicts


@selector("agreement", "categories that other seeds find as well", "higher")
def category_agreement(candidates: Candidates) -> list[Verdict]:
    """Median agreement of a model's categories with those of other seeds, latents matched one to one."""

    def measure(models: "list[Encoded]") -> list[float]:
        pairs = agreement([grouped_categories(model) for model in models])
        return [float(np.median(np.delete(row, own))) for own, row in enumerate(pairs)]

    return among_seeds(candidates, measure, discrete=True)


@selector("udr", "codes that other seeds find as well", "higher")
def unsupervised_ranking(candidates: Candidates) -> list[Verdict]:
    """UDR: median agreement of a model's codes with those of other seeds (Duan et al. 2020)."""
    from lddr.metrics.unsupervised import udr

    return among_seeds(candidates, lambda models: list(udr([model.codes for model in models]).scores))


@selector("centrality", CENTRALITY, "higher")
def model_centrality(candidates: Candidates) -> list[Verdict]:
    """Mean likeness to all other models, whatever their settings.

    Likeness is FactorVAE's score of one model's codes with the other's as the truth, mean of both ways.

    Not as published: images that share a value of a factor are images of the dataset for which the other model's latent
    falls into the same of at most 16 groups. The authors decode samples of the other model's prior with that latent
    held, and encode those, for which every model would have to encode the samples of every other.
    """
    verdicts, models = encoded_models(candidates, "there is no other to be like")
    if len(models) > 1:
        likeness = alike(list(models.values()))
        for own, place in enumerate(models):
            verdicts[place] = float(np.delete(likeness[own], own).mean())
    return verdicts


selectors.register("combined")(mean_rank(["agreement", "elbo"]))


def encoded_models(
    candidates: Candidates, otherwise: str = "", discrete: bool = False
) -> "tuple[list[Verdict], dict[int, Encoded]]":
    """Return the encoded models by the place of their run, and a verdict for every run: the reason if it has none."""
    verdicts: list[Verdict] = [otherwise] * len(candidates.runs)
    models = {}
    for place, model in enumerate(map(candidates.encode, candidates.runs)):
        if isinstance(model, str):
            verdicts[place] = model
        elif discrete and model.categories is None:
            verdicts[place] = "has no categories"
        else:
            models[place] = model
    return verdicts, models


def among_seeds(
    candidates: Candidates, measure: "Callable[[list[Encoded]], list[float]]", discrete: bool = False
) -> list[Verdict]:
    """Compare, as published, models that differ in nothing but the seed."""
    alone = "has no other seed of the same settings to be compared with"
    verdicts, models = encoded_models(candidates, alone, discrete)
    seeds: dict[frozenset, list[int]] = {}
    for place in models:
        seeds.setdefault(all_but_seed(candidates.runs[place]), []).append(place)
    for places in seeds.values():
        if len(places) > 1:
            for place, value in zip(places, measure([models[place] for place in places]), strict=True):
                verdicts[place] = value
    return verdicts


def all_but_seed(run: Run) -> frozenset:
    """Return the settings of a run that are not the seed."""
    return frozenset(item for item in run.settings.items() if item[0] != "seed")


# agreement of categories, up to the order of latents and the names of categories


def agreement(models: Sequence[Whole]) -> Floats:
    """(models, models), from grouped categories (samples, latents in use) of the same images; 1 on the diagonal.

    For a pair, latents are matched one to one so that the sum of their normalised mutual information is largest; that
    sum over the larger number of latents is 1 if each latent of one is a renaming of a latent of the other.
    """
    from scipy.optimize import linear_sum_assignment

    indicators = [(model[:, :, None] == np.arange(GROUPS)).astype(np.float32) for model in models]
    pairs = np.eye(len(models))
    for row, column in combinations(range(len(models)), 2):
        shared = normalised_information(indicators[column], indicators[row])
        matched = shared[linear_sum_assignment(shared, maximize=True)].sum()
        pairs[row, column] = pairs[column, row] = matched / max(*shared.shape, 1)
    return pairs


def grouped_categories(model: "Encoded") -> Whole:
    """Return the grouped categories of the latents in use, (samples, latents in use)."""
    assert model.categories is not None
    return _grouped_columns(model.categories[:, model.active])


def _grouped_columns(used: NDArray) -> Whole:
    return np.stack([grouped(column) for column in used.T], axis=1) if used.size else used.astype(np.int64)


def grouped(categories: Whole) -> Whole:
    """Neighbouring categories of one latent, (samples,), merged into at most 16 groups of about equal size.

    A category goes where the middle of its share falls, so that a latent with a few large categories keeps them.
    """
    _, numbers, counts = np.unique(categories, return_inverse=True, return_counts=True)
    middles = (np.cumsum(counts) - counts / 2) / len(categories)
    return np.floor(middles * GROUPS).astype(np.int64)[numbers]


def normalised_information(left: NDArray[np.float32], right: NDArray[np.float32]) -> Floats:
    """I(a; b) / max(H(a), H(b)) for each pair of latents, from indicators (samples, latents, groups).

    Each entropy is corrected for the number of its occupied cells k by (k - 1) / 2n (Miller & Madow 1955): without
    it, latents that have nothing in common would seem to share information.
    """
    samples = len(left)
    counts = left.reshape(samples, -1).T @ right.reshape(samples, -1)  # one product for all pairs of latents
    cells = counts.reshape(left.shape[1], GROUPS, right.shape[1], GROUPS).swapaxes(1, 2)
    joint = _entropies(cells.reshape(left.shape[1], right.shape[1], GROUPS**2), samples)
    one, other = _entropies(left.sum(axis=0), samples), _entropies(right.sum(axis=0), samples)
    information = np.maximum(one[:, None] + other - joint, 0.0)
    largest = np.maximum(one[:, None], other)
    return np.divide(information, largest, out=np.zeros_like(information), where=largest > 0)


def _entropies(counts: NDArray[np.float32], samples: int) -> Floats:
    """Corrected entropy in nats of the counts along the last axis."""
    whole = np.arange(samples + 1)
    surprise = whole * np.log(np.maximum(whole, 1))  # n log n, looked up: counts repeat
    entropy = np.log(samples) - surprise[counts.astype(np.intp)].sum(axis=-1) / samples
    return entropy + (np.count_nonzero(counts, axis=-1) - 1) / (2 * samples)


# likeness of models, for their centrality


def alike(models: "list[Encoded]") -> Floats:
    """(models, models), symmetric, from 0 to 1."""
    grouped = [truths(model) for model in models]
    scores = np.array([[vote_score(truth, model) for model in models] for truth in grouped])
    return (scores + scores.T) / 2


def truths(model: "Encoded") -> Whole:
    """Return the latents in use as factors of at most 16 values, (samples, latents in use)."""
    return _grouped_columns(model.codes[:, model.active])


def vote_score(truth: Whole, model: "Encoded") -> float:
    """FactorVAE's score of a model's codes for factors (samples, factors) of the same images.

    Images that share a value of one factor: which latent varies least among them? The score is how often that is the
    latent which stands for this factor most often.
    """
    codes = model.codes[:, model.active]
    if not codes.size or not truth.size:
        return 0.0
    factors, members = groups_to_compare(truth)
    least = (codes[members].var(axis=1) / codes.var(axis=0)).argmin(axis=1)  # (votes,)
    table = np.zeros((codes.shape[1], truth.shape[1]))
    np.add.at(table, (least, factors), 1)
    return float(table.max(axis=1).sum() / len(least))


def groups_to_compare(truth: Whole) -> tuple[Whole, Whole]:
    """A factor for each vote, and images that share a value of it: (votes,) and (votes, images)."""
    generator = stream(0, "centrality")
    factors = generator.integers(truth.shape[1], size=VOTES)
    centres, luck = generator.integers(len(truth), size=VOTES), generator.random((VOTES, GROUP))
    members = np.empty((VOTES, GROUP), np.int64)
    for vote, (factor, centre) in enumerate(zip(factors, centres, strict=True)):
        column = truth[:, factor]
        sharing = np.flatnonzero(column == column[centre])
        members[vote] = sharing[(luck[vote] * len(sharing)).astype(np.int64)]
    return factors, members
