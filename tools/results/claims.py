"""What a claim is, and what the files that judge claims share: a new one is a function in one of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import median

from estimates import Estimate, above, resampled
from table import of, read

from lddr.report.groups import scores_of
from lddr.report.style import dataset_title, metric_title, model_title
from lddr.runs.index import Run
from lddr_paper.published import paper_results

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


def beside(kinds: Mapping[str, Claim]) -> Claim:
    """One claim about several kinds of runs, each with what was seen and its verdict."""
    named = [(f"**{kind}**", claim.details) for kind, claim in kinds.items() if claim.details]
    return replace(
        next(iter(kinds.values())),
        seen="; ".join(f"{kind} {claim.seen}" for kind, claim in kinds.items()),
        verdict="; ".join(f"{kind}: {claim.verdict}" for kind, claim in kinds.items()),
        details=[line for kind, details in named for line in (kind, "", *details, "")][:-1],
    )


def counted(*groups: Sequence[object]) -> str:
    return " and ".join(str(len(group)) for group in groups) + " runs"


@dataclass(frozen=True)
class Comparison:
    """The scores of two models by one metric on one dataset."""

    dataset: str
    metric: str
    both: Sequence[Sequence[float]]
    ahead: Estimate  # the second model's median over the first's

    @property
    def row(self) -> tuple[str, ...]:
        medians = [f"{median(values):.3f}" for values in self.both]
        runs = " and ".join(str(len(values)) for values in self.both)
        named = dataset_title(self.dataset), metric_title(self.metric)
        return *named, *medians, self.ahead.told(), runs, self.ahead.verdict()


def comparisons(
    study: str, datasets: Sequence[str], metrics: Sequence[str], pair: Sequence[str]
) -> tuple[list[Comparison], Lines]:
    """Two models by every metric on every dataset for which both have runs, and the table of it."""
    found = []
    for dataset, metric in product(datasets, metrics):
        both = [scores_of(of(read(study), dataset, model), metric) for model in pair]
        if min(map(len, both)) >= 2:
            found.append(Comparison(dataset, metric, both, resampled(above, both[1], both[0])))
    if not found:
        raise NotYetError
    last = f"{model_title(pair[1])} ahead by"
    header = ("dataset", "metric", *map(model_title, pair), last, "runs", "by itself")
    return found, table(header, [one.row for one in found])


def better(title: str, paper: str, study: str, datasets: Sequence[str], pair: Sequence[str]) -> Claim:
    """Whether the second model's median is above the first's."""
    (first, *_), details = comparisons(study, datasets, ("mig", "dci"), pair)
    seen = f"median MIG {first.ahead.told()}; {counted(*first.both)}"
    return Claim(title, paper, seen, first.ahead.verdict(), details)
