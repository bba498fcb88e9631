"""What a claim is, and what the files that judge claims share: a new one is a function in one of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from estimates import above, resampled
from table import of, read

from lddr.report.groups import scores_of
from lddr.report.paper import paper_results
from lddr.report.titles import dataset_title, metric_title, model_title
from lddr.runs.index import Run

PAPER = paper_results()["claims"]
UNREGULARIZED = ("vae", "dvae")
DATASETS = ("dsprites", "rooms")
Lines = list[str]


@dataclass(frozen=True)
class Claim:
    """A claim beside what was seen."""

    title: str
    paper: str
    seen: str
    verdict: str
    details: Lines
    pictures: tuple[str, ...] = ()  # beside the page


class NotYetError(Exception):
    """There are no runs to judge it by."""


judges: list[Callable[[], Claim]] = []


def judge(function: Callable[[], Claim]) -> Callable[[], Claim]:
    judges.append(function)
    return function


def numbers(runs: Sequence[Run], score: str, fewest: int = 2) -> list[float]:
    values = scores_of(runs, score)
    if len(values) < fewest:
        raise NotYetError
    return values


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Lines:
    ruler = ["---", *["---:"] * (len(header) - 1)]
    return ["| " + " | ".join(row) + " |" for row in (header, ruler, *rows)]


def counted(*groups: Sequence[object]) -> str:
    return " and ".join(str(len(group)) for group in groups) + " runs"


def better(title: str, paper: str, study: str, datasets: Sequence[str], pair: Sequence[str]) -> Claim:
    """Whether the second model's median is above the first's."""
    rows, first = [], None
    for dataset in datasets:
        for metric in ("mig", "dci"):
            both = [scores_of(of(read(study), dataset, model), metric) for model in pair]
            if min(map(len, both)) < 2:
                continue
            more = resampled(above, both[1], both[0])
            medians = [f"{median(values):.3f}" for values in both]
            runs = " and ".join(str(len(values)) for values in both)
            rows.append((dataset_title(dataset), metric_title(metric), *medians, more.told(), runs, more.verdict()))
            first = first or (more, both)
    if first is None:
        raise NotYetError
    more, both = first
    header = ("dataset", "metric", *map(model_title, pair), "difference of medians", "runs", "by itself")
    seen = f"median MIG {more.told()}; {counted(*both)}"
    return Claim(title, paper, seen, more.verdict(), table(header, rows))
