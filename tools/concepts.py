"""Draw docs/images/rotation.png for docs/concepts.md: the cost of rotating a perfect code of `circles`.

python tools/concepts.py    (5 s)
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from lddr import losses
from lddr.data.load import load_dataset
from lddr.files import written_whole
from lddr.metrics import mig
from lddr.metrics.information import Floats
from lddr.report.style import INK, Axes, colour, house_style, paneled, rendered

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "rotation.png"
CATEGORIES = (64, 40)  # the default, and as many as there are values
VARIANCE = 0.01  # of every Gaussian posterior
ANGLES = np.arange(0, 91, 1.0)


def rotated(factors: Floats, degrees: float) -> Floats:
    """Return a perfect code, both factors spread evenly over [-1, 1], rotated around 0."""
    values = 2 * factors / factors.max(axis=0) - 1
    angle = np.radians(degrees)
    return values @ np.array([(np.cos(angle), np.sin(angle)), (-np.sin(angle), np.cos(angle))])


def gaussian_kl(codes: Floats) -> float:
    """Return the KL, in nats per image, of posteriors of one variance around the codes."""
    mean = torch.from_numpy(codes)
    return float(losses.gaussian_kl(mean, torch.full_like(mean, VARIANCE).log()).sum(-1).mean())


def pairs_used(codes: Floats, categories: int) -> int:
    """Return how many pairs of categories the codes use, scaled to [-1, 1] and rounded."""
    places = np.rint((codes / np.abs(codes).max() + 1) / 2 * (categories - 1)).astype(int)
    return len(np.unique(places, axis=0))


@house_style()
def draw() -> bytes:
    space = load_dataset("circles").space
    factors = space.factors_of(np.arange(space.size)).astype(float)
    codes = [rotated(factors, angle) for angle in ANGLES]
    whole = factors.astype(int)
    figure, (score, gaussian, discrete) = paneled(3, 3, (3.3, 2.9))
    _line(score, [mig(code, whole).score for code in codes], color=INK)
    score.set(title="MIG falls with rotation", ylabel="MIG")
    _line(gaussian, [gaussian_kl(code) for code in codes], color=colour("vae"))
    gaussian.set(title="Gaussian: rotation costs nothing", ylabel="KL, nats per image")
    for count, style in zip(CATEGORIES, "-:", strict=True):
        pairs = [pairs_used(code, count) for code in codes]
        _line(discrete, pairs, linestyle=style, color=colour("dvae"), label=f"{count} categories")
    discrete.set(title="discrete: images share a code", ylabel=f"different codes of {len(factors)} images")
    discrete.legend(loc="lower right")
    return rendered(figure, dpi=110)


def _line(axes: Axes, values: list[float] | list[int], **style: Any) -> None:
    axes.plot(ANGLES, values, linewidth=1.8, **style)
    axes.set(xlabel="rotation in degrees", xticks=range(0, 91, 15), ylim=(0, 1.15 * max(values)))


if __name__ == "__main__":
    with written_whole(PICTURE) as draft:
        draft.write_bytes(draw())
