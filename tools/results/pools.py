"""The discrete models of a dataset with everything that selectors know of them, from tables."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import codes
import numpy as np
from estimates import Estimate, paired_ranks
from table import RESULTS, of, read, write

from lddr.metrics.metric import SIX_METRICS
from lddr.metrics.udr import udr
from lddr.runs.index import Run
from lddr.selection.agreement import agreement
from lddr.selection.ranking import Encoded
from lddr.selection.selector import Candidates, selectors
from lddr.selection.selectors import alike, all_but_seed, grouped_categories

FOLDER = RESULTS / "selection"
STUDIES = ("circles", "families", "penalties", "beginnings", "brightness", "discrete", "choice")  # to choose from
LATENT = "categorical"
BY_SCORE = {name: selectors[name] for name in selectors if selectors[name].needs == "scores" and name != "validation"}
PAIRWISE = ("agreement", "udr", "centrality")
FEWEST = 20  # models of a dataset


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
    own = [run for run in runs if _takes_part(run)]
    codes.keep(own)
    everyone = [run for run in read(*STUDIES) if _takes_part(run) and "mig" in run.scores]
    for dataset in dict.fromkeys(str(run.value("dataset")) for run in own):
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
    return run.value("latent") == LATENT and run.value("supervision") is None


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
