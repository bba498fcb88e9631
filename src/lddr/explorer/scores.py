"""The results in a run's files: all scores, the factor that each latent encodes, and the training curves."""

import math
from typing import Any

from lddr.metrics.metric import UndefinedError
from lddr.runs.index import Run
from lddr.runs.information import Information, information_of

MOST_POINTS = 400  # of a curve


def known_information(run: Run) -> tuple[Information | None, str | None]:
    """Return the mutual information that MIG computed for a run, or why it is unknown."""
    try:
        return information_of(run.folder), None
    except UndefinedError as error:
        return None, str(error)


def all_scores(run: Run) -> dict[str, Any]:
    """Return every headline score with its details, or why it is missing, and the information matrix."""
    metrics = run.files.metrics
    found, unnamed = known_information(run)
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
    terms = dict.fromkeys(name for record in kept for name in record if name != "step")
    return {
        "state": run.state,
        "step": records[-1]["step"] if records else 0,
        "steps": run.value("steps"),
        "terms": {name: _curve(kept, name) for name in terms},
    }


def _curve(records: list[dict[str, Any]], name: str) -> list[tuple[int, float]]:
    points = ((record["step"], record.get(name)) for record in records)
    return [(step, value) for step, value in points if isinstance(value, int | float) and abs(value) < 1e300]
