"""Selectors: numbers that need no ground truth, by which a model can be chosen. A new one is one entry in this file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from lddr.registry import Registry
from lddr.runs.index import Run
from lddr.sweeps.encoding import Encoded

Verdict = float | str  # the number, or why this run has none
Better = Literal["lower", "higher"]


@dataclass(frozen=True)
class Candidates:
    """The runs to choose from, and how to see what their models make of images."""

    runs: Sequence[Run]
    encode: Callable[[Run], Encoded | str]


@dataclass(frozen=True)
class Selector:
    """One way to choose: what it measures, which direction is better, and what it needs."""

    summary: str
    better: Better
    needs: Literal["scores", "images"]  # images: every model encodes the same images of the dataset
    measure: Callable[[Candidates], list[Verdict]] = field(repr=False)
    same: tuple[str, ...] = ()  # settings that must not differ between runs whose numbers are compared

    @property
    def sign(self) -> int:
        """What to multiply with so that larger is better."""
        return 1 if self.better == "higher" else -1


selectors: Registry[Selector] = Registry("selector", homes=())


def find_selector(name: str) -> Selector:
    """A selector by its name; "gap+udr" is the mean rank by both."""
    parts = name.split("+")
    return mean_rank(parts) if len(parts) > 1 else selectors[name]


# scores that a run already has

EVALUATE = "discrete models get it with: lddr evaluate RUN --metrics gap"
UNSUPERVISED = "get it with: lddr evaluate RUN --metrics unsupervised"
SIZES = ("num_latents", "num_categories")
LABELS = ("supervision", "labels", "label_seed", "num_categories")


def by_score(column: str, better: Better, summary: str, cure: str = "", same: tuple[str, ...] = ()) -> Selector:
    """A score as a selector; the cure says how a run gets it."""
    missing = f"has no {column}" + (f"; {cure}" if cure else "")

    def measure(candidates: Candidates) -> list[Verdict]:
        values = [run.number(column) for run in candidates.runs]
        return [missing if value is None else value for value in values]

    return Selector(summary, better, "scores", measure, same)


for _name, _selector in {
    "gap": by_score("gap", "lower", "smallest straight-through gap, the paper's", EVALUATE),
    "relative": by_score("gap.relative", "lower", "smallest gap, as a share of the reconstruction error", EVALUATE),
    "discreteness": by_score("gap.confidence", "higher", "most confident posterior, all latents", EVALUATE, SIZES),
    "elbo": by_score("elbo", "higher", "largest evidence lower bound"),
    "reconstruction": by_score("reconstruction", "lower", "smallest reconstruction error"),
    "independence": by_score("unsupervised", "lower", "smallest total correlation of the codes", UNSUPERVISED),
    "validation": by_score(
        "validation_risk", "lower", "smallest risk on labelled images kept apart", "only supervised runs do", LABELS
    ),
}.items():
    selectors.register(_name)(_selector)


# what the models make of images


def crispness(candidates: Candidates) -> list[Verdict]:
    """The largest posterior probability, mean over images and latents in use: the others are never sure."""
    return [shown if isinstance(shown, str) else _crispness(shown) for shown in map(candidates.encode, candidates.runs)]


def _crispness(shown: Encoded) -> Verdict:
    if shown.confidence is None:
        return "has no categories"
    return float(shown.confidence[shown.active].mean()) if shown.active.any() else "has no latent in use"


def category_agreement(candidates: Candidates) -> list[Verdict]:
    """Median agreement of a model's categories with those of other seeds, latents matched one to one."""
    from lddr.sweeps.agreement import agreement

    def measure(models: list[Encoded]) -> list[float]:
        pairs = agreement([_grouped_categories(model) for model in models])
        return [float(np.median(np.delete(row, own))) for own, row in enumerate(pairs)]

    return among_seeds(candidates, measure, discrete=True)


def _grouped_categories(model: Encoded) -> np.ndarray:
    from lddr.sweeps.agreement import grouped

    assert model.categories is not None
    used = model.categories[:, model.active]
    return np.stack([grouped(column) for column in used.T], axis=1) if used.size else used


def unsupervised_ranking(candidates: Candidates) -> list[Verdict]:
    """UDR: median agreement of a model's codes with those of other seeds (Duan et al. 2020)."""
    from lddr.metrics.udr import udr

    return among_seeds(candidates, lambda models: list(udr([model.codes for model in models]).scores))


def among_seeds(
    candidates: Candidates, measure: Callable[[list[Encoded]], list[float]], discrete: bool = False
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
            seeds.setdefault(_all_but_seed(run), []).append(place)
    for places in seeds.values():
        if len(places) > 1:
            values = measure([shown[place] for place in places])  # type: ignore[misc]
            for place, value in zip(places, values, strict=True):
                verdicts[place] = value
    return verdicts


def _all_but_seed(run: Run) -> frozenset:
    return frozenset(item for item in run.settings.items() if item[0] != "seed")


selectors.register("crispness")(Selector("most confident posterior, latents in use", "higher", "images", crispness))
selectors.register("agreement")(
    Selector("categories that other seeds find as well", "higher", "images", category_agreement)
)
selectors.register("udr")(Selector("codes that other seeds find as well", "higher", "images", unsupervised_ranking))


# combinations


def mean_rank(names: Sequence[str]) -> Selector:
    """The mean of the ranks by several selectors, 1 for the best; runs that lack one of them have none."""
    parts = [selectors[name] for name in names]

    def measure(candidates: Candidates) -> list[Verdict]:
        columns = [part.measure(candidates) for part in parts]
        verdicts: list[Verdict] = [
            next((v for v in row if isinstance(v, str)), 0.0) for row in zip(*columns, strict=True)
        ]
        complete = [place for place, verdict in enumerate(verdicts) if not isinstance(verdict, str)]
        for place, rank in zip(complete, _mean_ranks(parts, columns, complete), strict=True):
            verdicts[place] = rank
        return verdicts

    needs = "images" if any(part.needs == "images" for part in parts) else "scores"
    same = tuple(dict.fromkeys(name for part in parts for name in part.same))
    return Selector(f"best mean rank by {', '.join(names)}", "lower", needs, measure, same)  # type: ignore[arg-type]


def _mean_ranks(parts: Sequence[Selector], columns: Sequence[list[Verdict]], places: list[int]) -> list[float]:
    from scipy.stats import rankdata

    values = [
        [-part.sign * float(column[place]) for place in places] for part, column in zip(parts, columns, strict=True)
    ]
    return rankdata(np.array(values), axis=1).mean(axis=0).tolist()


selectors.register("combined")(mean_rank(["agreement", "elbo"]))
