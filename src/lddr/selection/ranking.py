"""Choosing a model without ground truth: which runs can be compared, their ranking, and the evidence for the choice."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lddr.data.dataset import Dataset, Images, stream
from lddr.errors import UserError
from lddr.metrics.information import Floats, Whole
from lddr.runs.index import Run, Value
from lddr.selection.selector import DEFAULT, Candidates, Selector, find_selector

SAMPLES = 1000
ACTIVE_VARIANCE = 0.01  # of a latent that is in use, as for UDR


@dataclass(frozen=True)
class Encoded:
    """The images that all models of a dataset are shown, as one model encodes them."""

    codes: Floats  # (samples, latents)
    categories: Whole | None = None  # (samples, latents), of a discrete model
    confidence: Floats | None = None  # (latents,): the mean over the images of the largest probability

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which latents are in use: (latents,)."""
        return self.codes.var(axis=0) > ACTIVE_VARIANCE


class RunEncoder:
    """Encodes each run once; gives the reason instead where that cannot be done.

    The images are those of the given dataset if there is one, else of each run's own, loaded by name.
    """

    def __init__(self, samples: int = SAMPLES, device: str = "auto", dataset: Dataset | None = None) -> None:
        self._samples, self._device, self._dataset = samples, device, dataset
        self._known: dict[Path, Encoded | str] = {}

    def __call__(self, run: Run) -> Encoded | str:
        if run.folder not in self._known:
            try:
                self._known[run.folder] = encode(run, self._samples, self._device, self._dataset)
            except UserError as error:
                self._known[run.folder] = f"cannot be encoded: {error}"
        return self._known[run.folder]


def encode(run: Run, samples: int = SAMPLES, device: str = "auto", dataset: Dataset | None = None) -> Encoded:
    """What a run's model makes of images of its dataset, the same for every run of that dataset."""
    from lddr.trained import Trained

    images = _shown(run.files.dataset if dataset is None else dataset, samples)
    model = Trained.load(run.folder).to(device)
    codes = model.represent(images).astype(np.float64)
    if not model.is_discrete:
        return Encoded(codes)
    posterior = model.posterior(images)  # (samples, latents, categories)
    return Encoded(codes, posterior.argmax(axis=2), posterior.max(axis=2).mean(axis=0, dtype=np.float64))


@lru_cache(maxsize=4)
def _shown(dataset: Dataset, samples: int) -> Images:
    return dataset.draw(stream(0, "selection"), samples)


STATES = {
    "training": "is not finished",
    "broken": "is broken",
    "collapsed": "has learned nothing: its reconstructions are no better than the mean image",
}
COMPARABLE = ("dataset", "resolution", "checksum", "steps", "latent")  # else the numbers mean different things


@dataclass(frozen=True)
class Place:
    """A run in the ranking; those with the same value share a rank."""

    rank: int
    run: str
    value: float


@dataclass(frozen=True)
class Selection:
    """The chosen run and why: by which selector, among which runs, and who was left out for what reason."""

    chosen: str
    selector: str
    summary: str
    better: str
    value: float
    compared: dict[str, Value]  # what the ranked runs have in common
    varied: dict[str, list[Value]]  # what differs between them
    left_out: dict[str, list[str]]  # reason → runs
    ranking: tuple[Place, ...]  # best first

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return asdict(self)


def select(
    runs: Sequence[Run], by: str = DEFAULT, encode: Callable[[Run], Encoded | str] | None = None, quiet: bool = True
) -> Selection:
    """Rank comparable runs by a selector (or "gap+udr", the mean rank by several); the first one is the choice."""
    selector = find_selector(by)
    candidates = Candidates([run for run in runs if run.value("state") == "finished"], encode or RunEncoder())
    if selector.needs == "images":
        require_comparable(candidates.runs, selector)  # before minutes are spent on encoding
        candidates.look(quiet)
    verdicts, finished = selector.measure(candidates), candidates.runs
    left_out = _left_out(runs, finished, verdicts)
    values = {str(run.folder): float(v) for run, v in zip(finished, verdicts, strict=True) if not isinstance(v, str)}
    ranked = [run for run in finished if str(run.folder) in values]
    if not ranked:
        raise UserError(_nothing(by, left_out))
    require_comparable(ranked, selector)
    ranking = ranked_places(values, selector)
    return Selection(
        chosen=ranking[0].run,
        selector=by,
        summary=selector.summary,
        better=selector.better,
        value=ranking[0].value,
        compared={name: ranked[0].value(name) for name in dict.fromkeys(COMPARABLE + selector.same)},
        varied=_varied(ranked),
        left_out=left_out,
        ranking=ranking,
    )


def ranked_places(values: dict[str, float], selector: Selector) -> tuple[Place, ...]:
    """Best first; equal values share the rank, and go by name so that the choice is always the same."""
    ordered = sorted(values.items(), key=lambda item: (-selector.sign * item[1], item[0]))
    ranks: dict[float, int] = {}
    for position, (_, value) in enumerate(ordered, start=1):
        ranks.setdefault(value, position)
    return tuple(Place(ranks[value], run, value) for run, value in ordered)


def require_comparable(runs: Sequence[Run], selector: Selector) -> None:
    """Refuse to rank together what differs in more than what a sweep varies."""
    for name in dict.fromkeys(COMPARABLE + selector.same):
        counts = Counter(run.value(name) for run in runs)
        if len(counts) > 1:
            found = " or ".join(f"{_word(value)} ({count} runs)" for value, count in counts.most_common(4))
            most = _word(counts.most_common(1)[0][0])
            raise UserError(
                f"these runs cannot be ranked together: {name} is {found}; "
                f'choose those of one kind, for example with --where "{name}={most}"'
            )


def _varied(runs: Sequence[Run]) -> dict[str, list[Value]]:
    names = dict.fromkeys(name for run in runs for name in run.settings)
    values = {name: list(dict.fromkeys(run.value(name) for run in runs)) for name in names}
    return {name: found for name, found in values.items() if len(found) > 1}


def _left_out(runs: Sequence[Run], finished: Sequence[Run], verdicts: Sequence[float | str]) -> dict[str, list[str]]:
    why = [(STATES[str(run.value("state"))], run) for run in runs if run.value("state") != "finished"]
    why += [(verdict, run) for run, verdict in zip(finished, verdicts, strict=True) if isinstance(verdict, str)]
    reasons: dict[str, list[str]] = {}
    for reason, run in why:
        reasons.setdefault(reason, []).append(str(run.folder))
    return reasons


def _nothing(by: str, left_out: dict[str, list[str]]) -> str:
    if not left_out:
        return "there are no runs to choose from; train some, or give the folder that holds them"
    reason, folders = max(left_out.items(), key=lambda item: len(item[1]))
    return f"nothing can be chosen by {by}: {folders[0]} {reason}" + (
        f" (and so on for {len(folders)} runs)" if len(folders) > 1 else ""
    )


def _word(value: Value) -> str:
    return "none" if value is None else str(value)
