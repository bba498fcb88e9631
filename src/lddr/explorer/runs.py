"""The values in the files of the runs below one folder: the listing, and one run's scores and training curves."""

import hashlib
import math
import os
from pathlib import Path
from typing import Any

from lddr.errors import UserError
from lddr.metrics.metric import UndefinedError
from lddr.report.style import colour
from lddr.runs.folder import is_shipped
from lddr.runs.index import OWN, Run, list_runs, read_run
from lddr.runs.information import Information, information_of
from lddr.runs.tables import default_columns, known_columns

UNLISTED = ("folder", "name")  # the folder is private, and the name is the title of every row
MOST_POINTS = 400  # of a curve


class GoneError(UserError):
    """A run that does not exist, or no longer does."""

    def __init__(self) -> None:
        super().__init__("this run is no longer there; go back to the runs and choose another")


class Catalogue:
    """The runs of a folder by token: no text from a browser ever becomes part of a path."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._runs: dict[str, Run] = {}

    def listed(self) -> dict[str, Run]:
        """Return the current runs, by token."""
        # one assignment: concurrent readers get either the old listing or the new one
        self._runs = {self._token(run): run for run in list_runs(self.root)}
        return self._runs

    def folder(self, token: str) -> Path:
        """Return the folder of a token."""
        known = self._runs.get(token) or self.listed().get(token)
        if known is None or not known.files.is_run:
            raise GoneError
        return known.folder

    def run(self, token: str) -> Run:
        """Return the run of a token, read again from its files."""
        return read_run(self.folder(token))

    def table(self) -> dict[str, Any]:
        """Return every value of every run, and the columns worth showing."""
        listed = self.listed()
        runs = list(listed.values())
        shown, is_gallery = _worth_showing(runs), is_shipped(self.root)
        columns = [*shown, *(name for name in known_columns(runs) if name not in (*UNLISTED, *shown))]
        rows = [
            {"token": token, "name": run.name, "reason": self.without_root(run.reason)}
            | {"values": [run.value(name) for name in columns], "about": run.files.about if is_gallery else ""}
            for token, run in listed.items()
        ]
        return {
            "root": self.root.resolve().name,
            "gallery": is_gallery,
            "columns": [_column(name, runs, name in shown) for name in columns],
            "runs": rows,
            "colours": {model: colour(model) for model in sorted({str(run.value("model")) for run in runs})},
        }

    def about(self, run: Run) -> dict[str, Any]:
        """Return a run's settings, scores and state."""
        state = {"state": run.state, "reason": self.without_root(run.reason), "collapsed": run.collapsed}
        about = {"token": self._token(run), "name": run.name, "opens": run.files.model_file.exists()}
        return about | state | {"settings": run.settings, "scores": run.scores}

    def without_root(self, sentence: str | None) -> str | None:
        """Remove the path of the runs on this machine from a message, because others may read it."""
        return sentence and sentence.replace(f"{self.root}{os.sep}", "")

    def _token(self, run: Run) -> str:
        place = run.folder.relative_to(self.root).as_posix()
        return hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:12]


def _worth_showing(runs: list[Run]) -> list[str]:
    """Return the columns: a run's identity, then its scores, so that they stay visible, then settings that differ."""
    shown = default_columns(runs) if runs else []
    first = [name for name in (*OWN, "dataset", "model", "seed") if name in shown]
    scores = [name for name in shown if any(name in run.scores for run in runs)]
    return list(dict.fromkeys([*first, *scores, *shown]))


def _column(name: str, runs: list[Run], is_shown: bool) -> dict[str, Any]:
    kind = "number" if any(run.number(name) is not None for run in runs) else "text"
    return {"name": name, "kind": kind, "shown": is_shown, "score": any(name in run.scores for run in runs)}


def known_information(folder: Path) -> tuple[Information | None, str | None]:
    """Return the mutual information that MIG computed for a run, or why it is unknown."""
    try:
        return information_of(folder), None
    except UndefinedError as error:
        return None, str(error)


def all_scores(run: Run) -> dict[str, Any]:
    """Return every headline score with its details, or why it is missing, and the information matrix."""
    metrics = run.files.metrics
    found, unnamed = known_information(run.folder)
    return {
        "training": {name: value for name, value in run.scores.items() if name.split(".")[0] not in metrics},
        "metrics": [_about_score(name, entry.get("reason"), run) for name, entry in metrics.items()],
        "information": found and found.as_dict(),
        "unnamed": unnamed,
    }


def _about_score(name: str, reason: Any, run: Run) -> dict[str, Any]:
    details = {key.removeprefix(f"{name}."): value for key, value in run.scores.items() if key.startswith(f"{name}.")}
    return {"name": name, "score": run.scores.get(name), "reason": reason and str(reason), "details": details}


def curves_of(run: Run) -> dict[str, Any]:
    """Return the loss terms by step, so far."""
    records = run.files.log
    kept = records[:: max(1, math.ceil(len(records) / MOST_POINTS))]
    if records and kept[-1] is not records[-1]:
        kept.append(records[-1])
    terms: dict[str, list[tuple[int, float]]] = {name: [] for record in kept for name in record if name != "step"}
    for record in kept:
        for name, value in record.items():
            if name != "step" and isinstance(value, int | float) and abs(value) < 1e300:  # neither NaN nor infinite
                terms[name].append((record["step"], value))
    step = records[-1]["step"] if records else 0
    return {"state": run.state, "step": step, "steps": run.value("steps"), "terms": terms}
