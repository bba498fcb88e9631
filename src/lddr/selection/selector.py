"""The definition of a selector: a number for each run, mostly without ground truth, by which a model can be chosen."""

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
DEFAULT = "gap"  # the paper's; in results/selection the best selectors are indistinguishable
# Among seeds of one model: UDR has the smallest mean regret, in results/selection (0.43; the gap has 0.49) and on own
# pictures (results/own: 0.20; the gap has 0.28).
SEEDS_SELECTOR = "udr"


@dataclass(frozen=True)
class Candidates:
    """The runs to choose from, and how their models encode the images."""

    runs: Sequence[Run]
    encode: Callable[[Run], "Encoded | str"]  # computes each run once; a string says why it cannot be encoded

    def encode_all(self, quiet: bool) -> None:
        """Encode with every model, and show the progress."""
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
        """The factor that makes larger numbers better."""
        return 1 if self.better == "higher" else -1


selectors: Registry[Selector] = Registry("selector", homes=("lddr.selection.selectors",))


def selector(name: str, summary: str, better: Better, needs: Needs = "images") -> Callable[[Measure], Measure]:
    """Register the decorated function, from candidates to verdicts, as a selector."""

    def add(measure: Measure) -> Measure:
        selectors.register(name)(Selector(summary, better, needs, measure))
        return measure

    return add


def find_selector(name: str) -> Selector:
    """Return a selector by its name; "gap+udr" is the mean rank by both."""
    parts = name.split("+")
    return mean_rank(parts) if len(parts) > 1 else selectors[name]


def mean_rank(names: Sequence[str]) -> Selector:
    """Return the mean of the ranks by several selectors, 1 for the best; runs that lack one of them have none."""
    parts = [selectors[name] for name in names]

    def measure(candidates: Candidates) -> list[Verdict]:
        import numpy as np
        from scipy.stats import rankdata

        rows = list(zip(*(part.measure(candidates) for part in parts), strict=True))  # the verdicts on every run
        reasons = [next((verdict for verdict in row if isinstance(verdict, str)), None) for row in rows]
        complete = [row for row, reason in zip(rows, reasons, strict=True) if reason is None]
        values = np.array(complete, np.float64).reshape(-1, len(parts)) * [-part.sign for part in parts]
        ranks = iter(rankdata(values, axis=0).mean(axis=1).tolist())
        return [next(ranks) if reason is None else reason for reason in reasons]

    needs: Needs = "images" if any(part.needs == "images" for part in parts) else "scores"
    same = tuple(dict.fromkeys(name for part in parts for name in part.same))
    return Selector(f"best mean rank by {', '.join(names)}", "lower", needs, measure, same)
