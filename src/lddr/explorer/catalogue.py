"""The runs below one folder, by token: nothing that a browser sends ever becomes part of a path."""

import hashlib
import os
from pathlib import Path
from typing import Any

from lddr.errors import UserError
from lddr.report.style import colour
from lddr.runs.index import OWN, Run, list_runs, read_run
from lddr.runs.tables import default_columns, known_columns

UNLISTED = ("folder", "name")  # the folder is private, and the name is the title of every row


class GoneError(UserError):
    """A run that does not exist, or no longer does."""


class Catalogue:
    """The listing of a folder, and the only way to get from a token to a run."""

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
            raise GoneError("this run is no longer there; go back to the runs and choose another")
        return known.folder

    def run(self, token: str) -> Run:
        """Return the run of a token, read again from its files."""
        return read_run(self.folder(token))

    def table(self) -> dict[str, Any]:
        """Return every value of every run, and the columns worth showing."""
        listed = self.listed()
        runs = list(listed.values())
        shown = _worth_showing(runs)
        columns = [*shown, *(name for name in known_columns(runs) if name not in (*UNLISTED, *shown))]
        return {
            "root": self.root.resolve().name,
            "columns": [_column(name, runs, name in shown) for name in columns],
            "runs": [self._row(token, run, columns) for token, run in listed.items()],
            "colours": {model: colour(model) for model in sorted({str(run.value("model")) for run in runs})},
        }

    def about(self, token: str) -> dict[str, Any]:
        """Return a run's settings, scores and state."""
        run = self.run(token)
        facts = {"token": token, "name": run.name, "state": run.state, "reason": self.without_place(run.reason)}
        how_far = {"collapsed": run.collapsed, "opens": run.files.model_file.exists()}
        return facts | how_far | {"settings": run.settings, "scores": run.scores}

    def without_place(self, sentence: str | None) -> str | None:
        """Remove the path of the runs on this machine from a message, because others may read it."""
        return sentence and sentence.replace(f"{self.root}{os.sep}", "")

    def _row(self, token: str, run: Run, columns: list[str]) -> dict[str, Any]:
        values = [run.value(name) for name in columns]
        return {"token": token, "name": run.name, "reason": self.without_place(run.reason), "values": values}

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
