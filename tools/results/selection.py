"""Which selector deserves trust: how it orders models, and what choosing by it costs, by a rule fixed before."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import codes
import numpy as np
from claims import Lines, table
from estimates import Estimate, paired_ranks
from table import RESULTS, of, read, write

from lddr.metrics.choice import SIX_METRICS
from lddr.metrics.udr import udr
from lddr.report.titles import dataset_title, metric_title
from lddr.runs.index import Run
from lddr.selection.agreement import agreement
from lddr.selection.encoding import Encoded
from lddr.selection.selector import Candidates, selectors
from lddr.selection.selectors.centrality import alike
from lddr.selection.selectors.seeds import all_but_seed, grouped_categories

FOLDER = RESULTS / "selection"
STUDIES = ("circles", "families", "penalties", "beginnings", "discrete", "choice")  # with models to choose from
LATENT = "categorical"
BY_SCORE = {name: selectors[name] for name in selectors if selectors[name].needs == "scores" and name != "validation"}
PAIRWISE = ("agreement", "udr", "centrality")
SIZES = (5, 10, 20)  # models to choose from
RULE_SIZE, DRAWS, FEWEST = 10, 2_000, 20
RULE = f"""\
The rule: the winner has the lowest mean regret in MIG over datasets when it chooses from {RULE_SIZE} models at random.
Regret is what the best of them has more than the chosen one, over what the best has more than their median: 0 is the
best model, 1 the median one. Mean ranks of two selectors take part; the best of them is chosen on the models with even
seeds and told for those with odd ones. A selector that compares models compares those it may choose from, no others."""


@dataclass(frozen=True)
class Pool:
    """Discrete models of one dataset with everything that selectors know of them."""

    dataset: str
    runs: Sequence[Run]
    columns: Mapping[str, np.ndarray]  # selector → (models,), larger is better
    pairs: Mapping[str, np.ndarray]  # selector → (models, models), NaN for what is not compared

    def preference(self, selector: str, chosen: np.ndarray) -> np.ndarray:
        """Of sets of models, (sets, models) → the same; a + b is the mean rank. Who cannot be compared is last."""
        from scipy.stats import rankdata

        if "+" in selector:
            return np.mean([rankdata(self.preference(part, chosen), axis=1) for part in selector.split("+")], axis=0)
        if selector not in self.pairs:
            return self.columns[selector][chosen]
        among = self.pairs[selector][chosen[:, :, None], chosen[:, None, :]]
        alone = np.isnan(among).all(axis=2)
        among[alone] = -1.0
        return np.nanmean(among, axis=2) if selector == "centrality" else np.nanmedian(among, axis=2)

    @property
    def everyone(self) -> np.ndarray:
        return np.arange(len(self.runs))

    def correlations(self, selector: str, metrics: Sequence[str]) -> list[Estimate]:
        """With each metric, over all models."""
        liked = self.preference(selector, self.everyone[None])[0]
        return [paired_ranks(liked, self.truth(metric)) for metric in metrics]

    @property
    def metrics(self) -> list[str]:
        """Those of the six that all models have."""
        return [metric for metric in SIX_METRICS if all(metric in run.scores for run in self.runs)]

    def truth(self, metric: str = "mig") -> np.ndarray:
        return np.array([run.scores[metric] for run in self.runs])

    @property
    def selectors(self) -> list[str]:
        return [*self.columns, *self.pairs]


def gather(runs: Sequence[Run]) -> None:
    """Keep the codes of the runs' models, and compare all models of a dataset whose codes and scores are there."""
    codes.keep([run for run in runs if run.files.config.latent.is_discrete and run.value("supervision") is None])
    everyone = [run for run in read(*STUDIES) if _takes_part(run)]
    for dataset in dict.fromkeys(str(run.value("dataset")) for run in runs):
        shown = codes.kept(of(everyone, dataset))
        members = [run for run in of(everyone, dataset) if run.name in shown]
        if len(members) < 2:
            continue
        crisp = selectors["crispness"].measure(Candidates(members, lambda run, shown=shown: shown[run.name]))
        write(FOLDER / f"{dataset}.csv", ("run", "crispness"), [
            (run.name, f"{value:.5f}") for run, value in zip(members, crisp, strict=True) if not isinstance(value, str)
        ])  # fmt: skip
        compared = _compared(members, [shown[run.name] for run in members])
        write(FOLDER / f"{dataset}-pairs.csv", ("one", "other", *PAIRWISE), list(compared))


def _takes_part(run: Run) -> bool:
    return run.value("latent") == LATENT and run.value("supervision") is None and "mig" in run.scores


def _compared(runs: Sequence[Run], shown: list[Encoded]) -> Iterator[tuple[str, ...]]:
    tables = {
        "agreement": agreement([grouped_categories(model) for model in shown]),
        "udr": udr([model.codes for model in shown]).pairs,
        "centrality": alike(shown),
    }
    for one, other in combinations(range(len(runs)), 2):
        same = all_but_seed(runs[one]) == all_but_seed(runs[other])
        values = [
            f"{(tables[name][one, other] + tables[name][other, one]) / 2:.4f}" if same or name == "centrality" else ""
            for name in PAIRWISE
        ]
        yield runs[one].run, runs[other].run, *values


@cache
def pools() -> tuple[Pool, ...]:
    """One for each dataset with enough models."""
    runs = {run.name: run for run in read(*STUDIES)}
    found = []
    for path in sorted(FOLDER.glob("*-pairs.csv")):
        dataset = path.stem.removesuffix("-pairs")
        with (FOLDER / f"{dataset}.csv").open(newline="") as file:
            crisp = {row["run"]: float(row["crispness"]) for row in csv.DictReader(file)}
        members = [runs[name] for name in crisp if name in runs]
        if len(members) >= FEWEST:
            found.append(Pool(dataset, members, _columns(members, crisp), _pairs(path, members)))
    return tuple(found)


def _columns(runs: Sequence[Run], crisp: Mapping[str, float]) -> dict[str, np.ndarray]:
    columns = {"crispness": np.array([crisp[run.name] for run in runs])}
    for name, selector in BY_SCORE.items():
        values = selector.measure(Candidates(runs, lambda run: ""))
        if not any(isinstance(value, str) for value in values):
            columns[name] = selector.sign * np.array(values, np.float64)
    return columns


def _pairs(path: Path, runs: Sequence[Run]) -> dict[str, np.ndarray]:
    places = {run.run: place for place, run in enumerate(runs)}
    matrices = {name: np.full((len(runs), len(runs)), np.nan) for name in PAIRWISE}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["one"] in places and row["other"] in places:
                one, other = places[row["one"]], places[row["other"]]
                for name in PAIRWISE:
                    matrices[name][one, other] = matrices[name][other, one] = float(row[name] or "nan")
    return matrices


@dataclass(frozen=True)
class Choosing:
    """What choosing from so many models gives on average."""

    regret: float  # 0 is the best, 1 the median model
    lost: float  # best minus chosen, in MIG
    gained: float  # chosen minus median, in MIG


def choosing(pool: Pool, selector: str, size: int, among: np.ndarray | None = None) -> Choosing:
    """Over random sets of models; ties share what they give."""
    generator = np.random.default_rng(size)
    members = pool.everyone if among is None else among
    size = min(size, len(members))
    count = DRAWS if size < len(members) else 1
    drawn = generator.permuted(np.tile(members, (count, 1)), axis=1)[:, :size]
    truth, liked = pool.truth()[drawn], pool.preference(selector, drawn)
    is_chosen = liked == liked.max(axis=1, keepdims=True)
    chosen = float(((truth * is_chosen).sum(1) / is_chosen.sum(1)).mean())
    best, median = float(truth.max(axis=1).mean()), float(np.median(truth, axis=1).mean())
    return Choosing((best - chosen) / (best - median), best - chosen, chosen - median)


def told() -> list[str]:
    """The section of the page."""
    if not pools():
        return []
    names = [name for name in pools()[0].selectors if all(name in pool.selectors for pool in pools())]
    found = {name: {pool.dataset: choosing(pool, name, RULE_SIZE) for pool in pools()} for name in names}
    order = sorted(names, key=lambda name: float(np.mean([one.regret for one in found[name].values()])))
    parts = ["## Choosing a model without labels", RULE, _who_is_there(), "\n".join(_regrets(order, found))]
    parts += ["\n".join(_sizes(order[:6])), "\n".join(_correlations(order)), _combination(order)]
    return parts


def _who_is_there() -> str:
    told = ", ".join(f"{len(pool.runs)} on {dataset_title(pool.dataset)}" for pool in pools())
    return f"Categorical models: {told}."


def _regrets(order: Sequence[str], found: Mapping[str, Mapping[str, Choosing]]) -> Lines:
    rows = []
    for name in order:
        per = [f"{one.regret:.2f} ({one.gained:+.3f})".replace("-", "−") for one in found[name].values()]
        rows.append((name, f"{np.mean([one.regret for one in found[name].values()]):.2f}", *per))
    titles = [f"{dataset_title(pool.dataset)} (MIG over the median)" for pool in pools()]
    return table(("selector", "mean regret", *titles), rows)


def _sizes(names: Sequence[str]) -> Lines:
    sizes = {pool.dataset: [*(n for n in SIZES if n < len(pool.runs)), len(pool.runs)] for pool in pools()}
    header = [f"{dataset_title(pool.dataset)}, {size}" for pool in pools() for size in sizes[pool.dataset]]
    rows = [
        (name, *(f"{choosing(pool, name, size).regret:.2f}" for pool in pools() for size in sizes[pool.dataset]))
        for name in names
    ]
    return ["How the regret changes with the number of models to choose from:", "", *table(("selector", *header), rows)]


def _correlations(order: Sequence[str]) -> Lines:
    lines: Lines = []
    for pool in pools():
        rows = [(name, *(one.told(2) for one in pool.correlations(name, pool.metrics))) for name in order]
        lines += ["", f"Rank correlations with the metrics, {dataset_title(pool.dataset)}:", ""]
        lines += table(("selector", *map(metric_title, pool.metrics)), rows)
    return lines[1:]


def _combination(order: Sequence[str]) -> str:
    """The best pair of selectors on even seeds, told for odd ones beside the best single one."""
    halves = [[pool.everyone[_seeds(pool) % 2 == odd] for pool in pools()] for odd in (0, 1)]

    def regret(name: str, half: int) -> float:
        each = zip(pools(), halves[half], strict=True)
        return float(np.mean([choosing(pool, name, RULE_SIZE, among).regret for pool, among in each]))

    both = {"+".join(pair): regret("+".join(pair), 0) for pair in combinations(order[:6], 2)}
    best, single = min(both, key=lambda name: both[name]), min(order, key=lambda name: regret(name, 0))
    return (
        f"Mean ranks of two of the six best: on even seeds `{best}` is best ({both[best]:.2f}), the best by itself "
        f"`{single}` ({regret(single, 0):.2f}). On odd seeds, which had no part in that choice: {regret(best, 1):.2f} "
        f"and {regret(single, 1):.2f}."
    )


def _seeds(pool: Pool) -> np.ndarray:
    return np.array([int(run.value("seed") or 0) for run in pool.runs])
