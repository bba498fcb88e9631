"""What a selector is: a number for each run, mostly without ground truth, by which a model can be chosen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from lddr.console import watched
from lddr.registry import Registry
from lddr.runs.index import Run

if TYPE_CHECKING:
    from lddr.selection.ranking import Encoded

Verdict = float | str  # the number, or why this run has none
Better = Literal["lower", "higher"]
Needs = Literal["scores", "images"]  # images: every model encodes the same images of the dataset
DEFAULT = "gap"  # the paper's, and the winner by the rule of the results
# Among seeds of one model: UDR has the smallest mean regret, in results/README.md (0.43; the gap has 0.49) and on own
# pictures (results/own: 0.20; the gap has 0.28).
SEEDS_SELECTOR = "udr"


@dataclass(frozen=True)
class Candidates:
    """The runs to choose from, and how to see what their models make of images."""

    runs: Sequence[Run]
    encode: Callable[[Run], "Encoded | str"]  # remembers

    def look(self, quiet: bool) -> None:
        """Encode with every model, and show how far that is."""
        for run in watched(self.runs, "encoding", quiet):
            self.encode(run)


Measure = Callable[[Candidates], list[Verdict]]


@dataclass(frozen=True)
class Selector:
    """One way to choose: what it measures, which direction is better, and what it needs."""

    summary: str
    better: Better
    needs: Needs
    measure: Measure = field(repr=False)
    same: tuple[str, ...] = ()  # settings that must not differ between runs whose numbers are compared
    title: str = ""  # of what it measures, on an axis; its name where it has none

    @property
    def sign(self) -> int:
        """What to multiply with so that larger is better."""
        return 1 if self.better == "higher" else -1


selectors: Registry[Selector] = Registry("selector", homes=("lddr.selection.selectors",))


def selector(name: str, summary: str, better: Better, needs: Needs = "images") -> Callable[[Measure], Measure]:
    """Decorator: make a function from candidates to verdicts a selector."""

    def add(measure: Measure) -> Measure:
        selectors.register(name)(Selector(summary, better, needs, measure))
        return measure

    return add


def find_selector(name: str) -> Selector:
    """A selector by its name; "gap+udr" is the mean rank by both."""
    parts = name.split("+")
    return mean_rank(parts) if len(parts) > 1 else selectors[name]


def mean_rank(names: Sequence[str]) -> Selector:
    """The mean of the ranks by several selectors, 1 for the best; runs that lack one of them have none."""
    parts = [selectors[name] for name in names]

    def measure(candidates: Candidates) -> list[Verdict]:
        columns = [part.measure(candidates) for part in parts]
        verdicts = [next((v for v in row if isinstance(v, str)), 0.0) for row in zip(*columns, strict=True)]
        complete = [place for place, verdict in enumerate(verdicts) if not isinstance(verdict, str)]
        for place, rank in zip(complete, _mean_ranks(parts, columns, complete), strict=True):
            verdicts[place] = rank
        return verdicts

    needs: Needs = "images" if any(part.needs == "images" for part in parts) else "scores"
    same = tuple(dict.fromkeys(name for part in parts for name in part.same))
    return Selector(f"best mean rank by {', '.join(names)}", "lower", needs, measure, same)


def _mean_ranks(parts: Sequence[Selector], columns: Sequence[list[Verdict]], places: list[int]) -> list[float]:
    from scipy.stats import rankdata

    values = [
        [-part.sign * float(column[place]) for place in places] for part, column in zip(parts, columns, strict=True)
    ]
    return rankdata(values, axis=1).mean(axis=0).tolist()
