"""How far the runs of a study are, from their folders alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from lddr.config import Config
from lddr.metrics.evaluate import is_scored
from lddr.metrics.metric import Metric
from lddr.runs.folder import RunFolder

Stage = Literal["finished", "trained", "begun", "new"]


def stage_of(config: Config, out: Path, wanted: Mapping[str, Metric]) -> tuple[Stage, int]:
    """How far a run is, and how many training steps it has left; it is finished with the wanted scores."""
    folder, steps = RunFolder(out / config.run_name), config.training.steps
    if folder.is_finished:
        scores = folder.metrics
        scored = all(is_scored(scores.get(name), metric) for name, metric in wanted.items())
        return ("finished" if scored else "trained"), 0
    kept = folder.saved_step
    return ("new", steps) if kept is None else ("begun", steps - kept)
