"""What discrete models make of the same images, kept beside the tables: models of later runs are compared with them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from table import RESULTS

from lddr.console import watched
from lddr.files import written_whole
from lddr.runs.index import Run
from lddr.selection.ranking import Encoded, encode

FOLDER = RESULTS / "selection" / "codes"


def keep(runs: Sequence[Run]) -> None:
    """Encode with every model whose codes are not kept yet."""
    for run in watched([run for run in runs if not _file(run.name).exists()], "codes"):
        shown = encode(run)
        assert shown.categories is not None
        assert shown.confidence is not None
        with written_whole(_file(run.name)) as draft, draft.open("wb") as file:
            np.savez_compressed(
                file,
                codes=shown.codes.astype(np.float16),  # three digits of numbers from -1 to 1
                categories=shown.categories.astype(np.uint8),
                confidence=shown.confidence.astype(np.float32),
            )


def kept(runs: Sequence[Run]) -> Mapping[str, Encoded]:
    """Those of runs that have been kept, by the runs' names."""
    return {run.name: _read(_file(run.name)) for run in runs if _file(run.name).exists()}


def evenness(runs: Sequence[Run]) -> list[float]:
    """How evenly models use their categories: the entropy of the likeliest over images, summed over latents, in nats.

    Of the runs whose codes have been kept; a latent that gives all images one category adds nothing.
    """
    return [sum(map(_entropy, shown.categories.T)) for shown in kept(runs).values() if shown.categories is not None]


def _entropy(categories: np.ndarray) -> float:
    shares = np.unique(categories, return_counts=True)[1] / len(categories)
    return float(-(shares * np.log(shares)).sum())


def _file(name: str) -> Path:
    return FOLDER / f"{name}.npz"


def _read(path: Path) -> Encoded:
    with np.load(path, allow_pickle=False) as stored:
        return Encoded(
            stored["codes"].astype(np.float64),
            stored["categories"].astype(np.int64),
            stored["confidence"].astype(np.float64),
        )
