"""What the files of a run say: which latent tells which factor, all scores, and the curves of its training."""

import math
from contextlib import suppress
from pathlib import Path
from typing import Any

from lddr.errors import UserError
from lddr.runs.index import Run
from lddr.runs.information import Information, information_of

MOST_POINTS = 400  # of a curve


def information(folder: Path) -> Information | None:
    """What MIG has found about a run; None if it was not scored."""
    with suppress(UserError):
        return information_of(folder)
    return None


def report(run: Run) -> dict[str, Any]:
    """Every headline score with what else is known about it, or why there is none, and the information matrix."""
    rows = [_row(name, entry, run) for name, entry in run.files.metrics.items()]
    found = information(run.folder)
    return {
        "training": {name: value for name, value in run.scores.items() if name.split(".")[0] not in _names(rows)},
        "metrics": rows,
        "information": found.as_dict() if found else None,
    }


def _names(rows: list[dict[str, Any]]) -> set[str]:
    return {row["name"] for row in rows}


def _row(name: str, entry: dict[str, Any], run: Run) -> dict[str, Any]:
    details = {key.removeprefix(f"{name}."): value for key, value in run.scores.items() if key.startswith(f"{name}.")}
    reason = entry.get("reason")
    return {"name": name, "score": run.scores.get(name), "reason": reason and str(reason), "details": details}


def curves(run: Run) -> dict[str, Any]:
    """The terms of the loss by step, so far."""
    records = run.files.log
    kept = records[:: max(1, math.ceil(len(records) / MOST_POINTS))]
    if records and kept[-1] is not records[-1]:
        kept.append(records[-1])
    terms = dict.fromkeys(name for record in kept for name in record if name != "step")
    return {
        "state": run.state,
        "step": records[-1]["step"] if records else 0,
        "steps": run.value("steps"),
        "terms": {name: _curve(kept, name) for name in terms},
    }


def _curve(records: list[dict[str, Any]], name: str) -> list[tuple[int, float]]:
    points = ((record["step"], record.get(name)) for record in records)
    return [(step, value) for step, value in points if isinstance(value, int | float) and math.isfinite(value)]
