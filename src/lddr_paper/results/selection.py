"""Which selector to trust: how it ranks discrete models, and what choosing by it costs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations

import numpy as np
from scipy.stats import rankdata

from lddr.metrics.metric import SIX_METRICS
from lddr.metrics.unsupervised import udr
from lddr.report.exhibits import markdown_rows
from lddr.report.style import dataset_title, metric_title
from lddr.runs.index import Run
from lddr.selection.ranking import Encoded
from lddr.selection.selector import Candidates, selectors
from lddr.selection.selectors import agreement, alike, all_but_seed, grouped_categories
from lddr_paper.judging import Estimate, matching, rank_correlation
from lddr_paper.results.tables import RESULTS, keep_codes, read_codes, read_csv, read_runs, write_csv

FOLDER = RESULTS / "selection"
STUDIES = ("circles", "families", "penalties", "beginnings", "brightness", "discrete", "choice")  # to choose from
BY_SCORE = {name: selectors[name] for name in selectors if selectors[name].needs == "scores" and name != "validation"}
PAIRWISE = ("agreement", "udr", "centrality")
SMALLEST = 20  # models of a dataset that is reported
SIZES = (5, 10, 20)  # models to choose from
RULE_SIZE, DRAWS, EXACT = 10, 5_000, 50_000  # of the rule; random sets for a table, and for the order by the rule
HALVES, FEWER_DRAWS = 100, 200  # to see how certain the first place is
FEW = 5  # seeds of the smallest model types


@dataclass(frozen=True)
class Pool:
    """Discrete models of one dataset, and the preferences of selectors among them."""

    dataset: str
    runs: Sequence[Run]
    columns: Mapping[str, np.ndarray]  # selector → (models,), larger is better
    pairs: Mapping[str, np.ndarray]  # selector → (models, models), NaN for models that are not compared

    def preference(self, selector: str, chosen: np.ndarray) -> np.ndarray:
        """Return the preferences in sets of models, (sets, models); "a+b" is the mean rank, and NaN comes last."""
        if "+" in selector:
            return np.mean([rankdata(self.preference(part, chosen), axis=1) for part in selector.split("+")], axis=0)
        if selector not in self.pairs:
            return self.columns[selector][chosen]
        among = self.pairs[selector][chosen[:, :, None], chosen[:, None, :]]
        among[np.isnan(among).all(axis=2)] = -1.0
        return np.nanmean(among, axis=2) if selector == "centrality" else np.nanmedian(among, axis=2)

    @property
    def everyone(self) -> np.ndarray:
        return np.arange(len(self.runs))

    @property
    def selectors(self) -> list[str]:
        return [*self.columns, *self.pairs]

    @property
    def metrics(self) -> list[str]:
        """Return those of the six that all models have."""
        return [metric for metric in SIX_METRICS if all(metric in run.scores for run in self.runs)]

    def truth(self, metric: str = "mig") -> np.ndarray:
        return np.array([run.scores[metric] for run in self.runs])

    def correlations(self, selector: str) -> list[Estimate]:
        """Return the rank correlation with each metric, over all models."""
        preferred = self.preference(selector, self.everyone[None])[0]
        return [rank_correlation(preferred, self.truth(metric)) for metric in self.metrics]


def gather(runs: Sequence[Run]) -> None:
    """Keep the codes of the runs' models, and compare all models of a dataset whose codes and scores are there."""
    unlabelled = [run for run in read_runs(*STUDIES) if run.value("supervision") is None]
    everyone = [run for run in unlabelled if run.value("latent") == "categorical" and "mig" in run.scores]
    names = {run.name for run in everyone}
    own = [run for run in runs if run.name in names]
    keep_codes(own)
    for dataset in dict.fromkeys(str(run.value("dataset")) for run in own):
        shown = read_codes(matching(everyone, dataset))
        members = [run for run in matching(everyone, dataset) if run.name in shown]
        if len(members) < 2:
            continue
        crisp = selectors["crispness"].measure(Candidates(members, partial(_codes_of, shown)))
        known = [
            (run.name, f"{value:.5f}") for run, value in zip(members, crisp, strict=True) if not isinstance(value, str)
        ]
        write_csv(FOLDER / f"{dataset}.csv", ("run", "crispness"), known)
        pairs = _compared(members, [shown[run.name] for run in members])
        write_csv(FOLDER / f"{dataset}-pairs.csv", ("one", "other", *PAIRWISE), pairs)


def _codes_of(shown: Mapping[str, Encoded], run: Run) -> Encoded:
    return shown[run.name]


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
    """Return one for each dataset with enough models."""
    runs = {run.name: run for run in read_runs(*STUDIES)}
    found = []
    for path in sorted(FOLDER.glob("*-pairs.csv")):
        dataset = path.stem.removesuffix("-pairs")
        crisp = {row["run"]: float(row["crispness"]) for row in read_csv(FOLDER / f"{dataset}.csv")}
        members = [runs[name] for name in crisp if name in runs]
        if len(members) < SMALLEST:
            continue
        columns = {"crispness": np.array([crisp[run.name] for run in members])}
        for name, selector in BY_SCORE.items():
            values = selector.measure(Candidates(members, lambda run: ""))
            if not any(isinstance(value, str) for value in values):
                columns[name] = selector.sign * np.array(values, np.float64)
        places = {run.run: place for place, run in enumerate(members)}
        pairs = {name: np.full((len(members), len(members)), np.nan) for name in PAIRWISE}
        for row in read_csv(path):
            if row["one"] in places and row["other"] in places:
                one, other = places[row["one"]], places[row["other"]]
                for name in PAIRWISE:
                    pairs[name][one, other] = pairs[name][other, one] = float(row.get(name, "nan"))
        found.append(Pool(dataset, members, columns, pairs))
    return tuple(found)


@dataclass(frozen=True)
class Choosing:
    """The mean result of choosing from some models."""

    regret: float  # 0 for the best model, 1 for the median one
    lost: float  # best minus chosen, in MIG
    gained: float  # chosen minus median, in MIG


def choosing(
    pool: Pool, selector: str, size: int, among: np.ndarray | None = None, draws: int = DRAWS, metric: str = "mig"
) -> Choosing:
    """Return the mean over random sets of models of this size; models that tie share what they give."""
    generator = np.random.default_rng(size)
    members = pool.everyone if among is None else among
    size = min(size, len(members))
    count = draws if size < len(members) else 1
    drawn = generator.permuted(np.tile(members, (count, 1)), axis=1)[:, :size]
    truth, preferred = pool.truth(metric)[drawn], pool.preference(selector, drawn)
    is_chosen = preferred == preferred.max(axis=1, keepdims=True)
    chosen = float(((truth * is_chosen).sum(1) / is_chosen.sum(1)).mean())
    best, median = float(truth.max(axis=1).mean()), float(np.median(truth, axis=1).mean())
    return Choosing((best - chosen) / (best - median), best - chosen, chosen - median)


def mean_regret(selector: str, among: Sequence[np.ndarray], draws: int = DRAWS) -> float:
    """Return the mean over datasets, of each of which some models take part."""
    each = zip(pools(), among, strict=True)
    return float(np.mean([choosing(pool, selector, RULE_SIZE, some, draws).regret for pool, some in each]))


@cache
def ordered() -> dict[str, list[Choosing]]:
    """Return the selectors that all datasets have, lowest mean regret first, with the results on every dataset."""
    names = [name for name in pools()[0].selectors if all(name in pool.selectors for pool in pools())]
    found = {name: [choosing(pool, name, RULE_SIZE, draws=EXACT) for pool in pools()] for name in names}
    return dict(sorted(found.items(), key=lambda item: np.mean([one.regret for one in item[1]])))


@cache
def pair_of_selectors() -> tuple[str, str, dict[str, float], dict[str, float]]:
    """Return the best pair and the best single selector on even seeds, and all regrets on even and on odd seeds."""
    seeds = [np.array([int(run.value("seed") or 0) for run in pool.runs]) for pool in pools()]
    halves = [[pool.everyone[own % 2 == odd] for pool, own in zip(pools(), seeds, strict=True)] for odd in (0, 1)]
    even, odd = ({name: mean_regret(name, half) for name in ordered()} for half in halves)
    six = sorted(even, key=lambda name: even[name])[:6]  # odd seeds have no part in it
    pairs = {"+".join(pair): mean_regret("+".join(pair), halves[0]) for pair in combinations(six, 2)}
    pair = min(pairs, key=lambda name: pairs[name])
    return pair, six[0], even | {pair: pairs[pair]}, odd | {pair: mean_regret(pair, halves[1])}


def sections() -> dict[str, str]:
    """Return the parts of the page by the names of its template."""
    order = list(ordered())
    pair, single, even, odd = pair_of_selectors()
    best_odd = min(odd, key=lambda name: odd[name])
    first = _first_places(order)
    return {
        "models_to_choose_from": ", ".join(f"{len(pool.runs)} on {dataset_title(pool.dataset)}" for pool in pools()),
        "regrets": _regrets(),
        "first_selector": order[0],
        "first_regret": f"{np.mean([one.regret for one in ordered()[order[0]]]):.2f}",
        "first_places": str(first[order[0]]),
        "all_first_places": ", ".join(f"`{name}` in {count}" for name, count in first.most_common(4)),
        "consistent": " and ".join(f"`{name}`" for name in order if all(_mig(pool, name).low > 0 for pool in pools())),
        "halves": str(HALVES),
        "sizes": _sizes(order[:6]),
        "pair": f"`{pair}` ({even[pair]:.2f} on even seeds, {odd[pair]:.2f} on odd ones)",
        "single": f"`{single}` ({even[single]:.2f} and {odd[single]:.2f})",
        "best_odd": f"`{best_odd}` ({odd[best_odd]:.2f})",
        "regrets_within_types": _within_types(order),
        "udr_within_types": f"{_regret_within_largest('udr'):.2f}",
        "gap_within_types": f"{_regret_within_largest('gap'):.2f}",
    }


def _mig(pool: Pool, selector: str) -> Estimate:
    return pool.correlations(selector)[pool.metrics.index("mig")]


def num_correlations() -> int:
    """Return how many rank correlations the figure and its table show."""
    return sum(len(pool.selectors) * len(pool.metrics) for pool in pools())


def write_correlations() -> None:
    """Write the rank correlation of every selector with every metric, with its interval, to a table."""
    rows = [
        (pool.dataset, name, metric, *(f"{value:.3f}" for value in (one.value, one.low, one.high)))
        for pool in pools()
        for name in pool.selectors
        for metric, one in zip(pool.metrics, pool.correlations(name), strict=True)
    ]
    write_csv(FOLDER / "correlations.csv", ("dataset", "selector", "metric", "correlation", "low", "high"), rows)


def _regrets() -> str:
    rows = []
    for name, found in ordered().items():
        each = [f"{one.regret:.2f} ({one.gained:+.3f})".replace("-", "−") for one in found]
        dci = [choosing(pool, name, RULE_SIZE, metric="dci").regret for pool in pools() if "dci" in pool.metrics]
        rows.append((name, f"{np.mean([one.regret for one in found]):.2f}", *each, f"{np.mean(dci):.2f}"))
    titles = [f"{dataset_title(pool.dataset)} (MIG above the median)" for pool in pools()]
    return markdown_rows(("selector", "mean regret", *titles, f"mean regret in {metric_title('dci')}"), rows)


def _first_places(order: Sequence[str]) -> Counter[str]:
    """Return how often each selector has the lowest regret when a random half of the models is left out."""
    generator, first = np.random.default_rng(0), Counter[str]()
    for _ in range(HALVES):
        halves = [generator.permutation(pool.everyone)[: len(pool.runs) // 2] for pool in pools()]
        first[min(order, key=lambda name: mean_regret(name, halves, FEWER_DRAWS))] += 1
    return first


def _sizes(names: Sequence[str]) -> str:
    sizes = [(pool, size) for pool in pools() for size in (*(n for n in SIZES if n < len(pool.runs)), len(pool.runs))]
    header = [f"{dataset_title(pool.dataset)}, {size}" for pool, size in sizes]
    rows = [(name, *(f"{choosing(pool, name, size).regret:.2f}" for pool, size in sizes)) for name in names]
    return markdown_rows(("selector", *header), rows)


def _regret_within_largest(selector: str) -> float:
    """Return the mean regret over datasets of choosing among seeds of the model type with the most runs."""
    return float(np.mean([choosing(pool, selector, RULE_SIZE, types_of(pool)[0]).regret for pool in pools()]))


def _within_types(names: Sequence[str]) -> str:
    """Return the regrets of choosing among seeds of the largest type of every dataset, and of each other type."""
    types = [types_of(pool) for pool in pools()]
    header, columns = ["selector", "mean regret"], []
    for pool, (largest, *_) in zip(pools(), types, strict=True):
        header.append(f"{dataset_title(pool.dataset)}, {len(largest)} D-VAEs")
        columns.append({name: choosing(pool, name, RULE_SIZE, largest).regret for name in names})
    mean = {name: float(np.mean([column[name] for column in columns])) for name in names}
    for pool, (_, *others) in zip(pools(), types, strict=True):
        if others:
            header.append(f"{dataset_title(pool.dataset)}, {len(others)} other types")
            columns.append({name: regret_over_types(pool, name, others) for name in names})
    rows = [(name, f"{mean[name]:.2f}", *(f"{column[name]:.2f}" for column in columns)) for name in names]
    return markdown_rows(header, sorted(rows, key=lambda row: mean[row[0]]))


def types_of(pool: Pool) -> list[np.ndarray]:
    """Return the models of each type, the largest first: D-VAEs with the default bias everywhere."""
    found: dict[object, list[int]] = {}
    for place, run in enumerate(pool.runs):
        found.setdefault(all_but_seed(run), []).append(place)
    return [pool.everyone[some] for some in sorted(found.values(), key=len, reverse=True) if len(some) >= FEW]


def regret_over_types(pool: Pool, selector: str, types: Sequence[np.ndarray]) -> float:
    """Return the regret over several types, each weighted by how much there is to lose."""
    each = [choosing(pool, selector, FEW, some) for some in types]
    return sum(one.lost for one in each) / sum(one.lost + one.gained for one in each)
