"""What the files of a run say: which latent tells which factor, all scores, and the curves of its training."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lddr.runs.index import Run
from lddr.training.tracking import read_log

LEAST_SHARE = 0.1  # of a factor's entropy that a latent must tell to be called after it
MOST_POINTS = 400  # of a curve
DAMAGE = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True)
class Information:
    """The mutual information in nats between latents and factors, and the entropy of every factor."""

    factors: list[str]
    matrix: NDArray[np.float64]  # (latents, factors)
    entropies: NDArray[np.float64]  # (factors,)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The part of each factor's entropy that each latent tells: (latents, factors)."""
        known = np.where(self.entropies > 0, self.entropies, np.inf)
        return self.matrix / known

    def label(self, latent: int) -> tuple[str, float] | None:
        """The factor this latent tells the most of, and how much of it; None if it is next to nothing."""
        shares = self.shares[latent]
        best = int(shares.argmax())
        return (self.factors[best], float(shares[best])) if shares[best] >= LEAST_SHARE else None

    def as_dict(self) -> dict[str, Any]:
        return {"factors": self.factors, "matrix": self.matrix.tolist(), "shares": self.shares.tolist()}


def information(folder: Path) -> Information | None:
    """What MIG has found about a run, with the names of the factors; None if it was not scored."""
    try:
        entry = json.loads((folder / "scores.json").read_bytes())["metrics"]["mig"]
        factors = json.loads((folder / "config.json").read_bytes())["dataset"]["factors"]
        names = [name for name in factors if name not in entry.get("factors_left_out", {})]
        matrix = np.nan_to_num(np.array(entry["mutual_information"], np.float64))
        entropies = np.nan_to_num(np.array(entry["entropies"], np.float64))
    except DAMAGE:
        return None
    fits = matrix.ndim == 2 and matrix.shape[1:] == entropies.shape == (len(names),) and names
    return Information(names, matrix, entropies) if fits else None


def report(run: Run) -> dict[str, Any]:
    """Every headline score with what else is known about it, or why there is none, and the information matrix."""
    try:
        metrics = json.loads((run.folder / "scores.json").read_bytes()).get("metrics", {})
        rows = [_row(name, entry, run) for name, entry in metrics.items()]
    except DAMAGE:
        rows = []
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
    path = run.folder / "log.jsonl"
    records = read_log(path) if path.exists() else []
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
