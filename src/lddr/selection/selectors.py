"""The selectors: numbers of runs, mostly without labels, by which a model can be chosen."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from lddr.runs.index import Run
from lddr.selection.selector import Better, Candidates, Selector, Verdict, mean_rank, selector, selectors

if TYPE_CHECKING:
    from lddr.metrics.information import Floats, Whole
    from lddr.selection.ranking import Encoded

EVALUATE = "discrete models get it with: lddr evaluate RUN --metrics gap"
UNSUPERVISED = "get it with: lddr evaluate RUN --metrics unsupervised"
SIZES = ("num_latents", "num_categories")
LABELS = ("supervision", "labels", "label_seed", "num_categories")


def by_score(
    name: str, column: str, better: Better, summary: str, cure: str = "", same: tuple[str, ...] = (), title: str = ""
) -> Selector:
    """Make a score a selector; the cure says how a run gets it."""
    missing = f"has no {column}" + (f"; {cure}" if cure else "")

    def measure(candidates: Candidates) -> list[Verdict]:
        values = [run.number(column) for run in candidates.runs]
        return [missing if value is None else value for value in values]

    return selectors.register(name)(Selector(summary, better, "scores", measure, same, title))


by_score("gap", "gap", "lower", "smallest straight-through gap, the paper's", EVALUATE, title="Gap_ST")
RELATIVE = "smallest gap, as a share of the reconstruction error"
by_score("relative", "gap.relative", "lower", RELATIVE, EVALUATE, title="Gap_ST, relative")
CONFIDENT = "most confident posterior, all latents"
by_score("discreteness", "gap.confidence", "higher", CONFIDENT, EVALUATE, SIZES, "confidence")
SAMPLED = "get it with: lddr evaluate RUN --metrics elbo"
by_score("elbo", "elbo", "higher", "largest evidence lower bound, of samples", SAMPLED, title="ELBO")
NOISELESS = "largest ELBO of codes without noise, which is no bound"
by_score("elbo_noiseless", "elbo_noiseless", "higher", NOISELESS, title="ELBO without noise")
by_score("reconstruction", "reconstruction", "lower", "smallest reconstruction error")
INDEPENDENT = "smallest total correlation of the codes"
by_score("independence", "unsupervised", "lower", INDEPENDENT, UNSUPERVISED, title="total correlation")
APART = "decodings of independently drawn latents that pass for reconstructions"
by_score("pipe", "pipe", "higher", APART, "get it with: lddr evaluate RUN --metrics pipe", title="PIPE")
KEPT_APART = "smallest risk on labelled images kept apart"
by_score("validation", "validation_risk", "lower", KEPT_APART, "only supervised runs do", LABELS)


@selector("crispness", "most confident posterior, latents in use", "higher")
def crispness(candidates: Candidates) -> list[Verdict]:
    """The largest posterior probability, mean over images and latents in use: the others are never sure."""
    return [shown if isinstance(shown, str) else _crispness(shown) for shown in map(candidates.encode, candidates.runs)]


def _crispness(shown: "Encoded") -> Verdict:
    if shown.confidence is None:
        return "has no categories"
    return float(shown.confidence[shown.active].mean()) if shown.active.any() else "has no latent in use"


@selector("agreement", "categories that other seeds find as well", "higher")
def category_agreement(candidates: Candidates) -> list[Verdict]:
    """Median agreement of a model's categories with those of other seeds, latents matched one to one."""
    import numpy as np

    from lddr.selection.agreement import agreement

    def measure(models: "list[Encoded]") -> list[float]:
        pairs = agreement([grouped_categories(model) for model in models])
        return [float(np.median(np.delete(row, own))) for own, row in enumerate(pairs)]

    return among_seeds(candidates, measure, discrete=True)


def grouped_categories(model: "Encoded") -> "Whole":
    import numpy as np

    from lddr.selection.agreement import grouped

    assert model.categories is not None
    used = model.categories[:, model.active]
    return np.stack([grouped(column) for column in used.T], axis=1) if used.size else used


@selector("udr", "codes that other seeds find as well", "higher")
def unsupervised_ranking(candidates: Candidates) -> list[Verdict]:
    """UDR: median agreement of a model's codes with those of other seeds (Duan et al. 2020)."""
    from lddr.metrics.udr import udr

    return among_seeds(candidates, lambda models: list(udr([model.codes for model in models]).scores))


selectors.register("combined")(mean_rank(["agreement", "elbo"]))


def among_seeds(
    candidates: Candidates, measure: "Callable[[list[Encoded]], list[float]]", discrete: bool = False
) -> list[Verdict]:
    """Compare, as published, models that differ in nothing but the seed."""
    shown = [candidates.encode(run) for run in candidates.runs]
    verdicts: list[Verdict] = ["has no other seed of the same settings to be compared with"] * len(shown)
    seeds: dict[frozenset, list[int]] = {}
    for place, (run, seen) in enumerate(zip(candidates.runs, shown, strict=True)):
        if isinstance(seen, str):
            verdicts[place] = seen
        elif discrete and seen.categories is None:
            verdicts[place] = "has no categories"
        else:
            seeds.setdefault(all_but_seed(run), []).append(place)
    for places in seeds.values():
        if len(places) > 1:
            values = measure([shown[place] for place in places])  # type: ignore[misc]
            for place, value in zip(places, values, strict=True):
                verdicts[place] = value
    return verdicts


def all_but_seed(run: Run) -> frozenset:
    return frozenset(item for item in run.settings.items() if item[0] != "seed")


VOTES, GROUP = 500, 16  # rounds of FactorVAE's score, and images in each


SUMMARY = "codes that stand for the others' codes (ModelCentrality on dataset images, not on decoded samples)"


@selector("centrality", SUMMARY, "higher")
def model_centrality(candidates: Candidates) -> list[Verdict]:
    """Mean likeness to all other models, whatever their settings.

    Likeness is FactorVAE's score of one model's codes with the other's as the truth, mean of both ways.

    Not as published: images that share a value of a factor are images of the dataset for which the other model's latent
    falls into the same of at most 16 groups. The authors decode samples of the other model's prior with that latent
    held, and encode those, for which every model would have to encode the samples of every other.
    """
    import numpy as np

    shown = [candidates.encode(run) for run in candidates.runs]
    verdicts: list[Verdict] = [seen if isinstance(seen, str) else "there is no other to be like" for seen in shown]
    places = [place for place, seen in enumerate(shown) if not isinstance(seen, str)]
    if len(places) < 2:
        return verdicts
    likeness = alike([shown[place] for place in places])  # type: ignore[misc]
    for own, place in enumerate(places):
        verdicts[place] = float(np.delete(likeness[own], own).mean())
    return verdicts


def alike(models: "list[Encoded]") -> "Floats":
    """(models, models), symmetric, from 0 to 1."""
    import numpy as np

    grouped = [truths(model) for model in models]
    scores = np.array([[vote_score(truth, model) for model in models] for truth in grouped])
    return (scores + scores.T) / 2


def truths(model: "Encoded") -> "Whole":
    """The latents in use as factors of at most 16 values, (samples, latents in use)."""
    import numpy as np

    from lddr.selection.agreement import grouped

    used = model.codes[:, model.active]
    return np.stack([grouped(column) for column in used.T], axis=1) if used.size else used.astype(np.int64)


def vote_score(truth: "Whole", model: "Encoded") -> float:
    """FactorVAE's score of a model's codes for factors (samples, factors) of the same images.

    Images that share a value of one factor: which latent varies least among them? The score is how often that is the
    latent which stands for this factor most often.
    """
    import numpy as np

    codes = model.codes[:, model.active]
    if not codes.size or not truth.size:
        return 0.0
    factors, members = drawn_groups(truth)
    least = (codes[members].var(axis=1) / codes.var(axis=0)).argmin(axis=1)  # (votes,)
    table = np.zeros((codes.shape[1], truth.shape[1]))
    np.add.at(table, (least, factors), 1)
    return float(table.max(axis=1).sum() / len(least))


def drawn_groups(truth: "Whole") -> "tuple[Whole, Whole]":
    """A factor for each vote, and images that share a value of it: (votes,) and (votes, images)."""
    import numpy as np

    from lddr.data.dataset import stream

    generator = stream(0, "centrality")
    factors = generator.integers(truth.shape[1], size=VOTES)
    centres, luck = generator.integers(len(truth), size=VOTES), generator.random((VOTES, GROUP))
    members = np.empty((VOTES, GROUP), np.int64)
    for vote, (factor, centre) in enumerate(zip(factors, centres, strict=True)):
        column = truth[:, factor]
        sharing = np.flatnonzero(column == column[centre])
        members[vote] = sharing[(luck[vote] * len(sharing)).astype(np.int64)]
    return factors, members
