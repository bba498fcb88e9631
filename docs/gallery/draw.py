"""Draw the gallery again: python docs/gallery/draw.py CIRCLES-RUNS RUN MASKED-RUN [FIGURE…]

CIRCLES-RUNS are those of study.toml, RUN is any model, MASKED-RUN a semi-supervised one.
"""

import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from PIL import Image

from lddr.files import written_whole
from lddr.report.figures import figures, run_figures
from lddr.report.pictures import write_traversals
from lddr.report.style import rendered
from lddr.runs.index import Run, list_runs

HERE = Path(__file__).parent
DRAWINGS = ("circles.png", "circles-vae.png", "circles-dvae.png", "metrics.png")
PICTURES = ("run-traversals.png", "run-reconstructions.png")
DPI = {"traversals": 80}
FROM_RUNS = ("observations", "gumbel-softmax", "circles", "circles-vae", "circles-dvae", "curves", "rate-distortion")
FROM_RUNS += ("selectors", "selectors-combined", "efficiency", "metrics", "mig", "semi-supervised")
OF_A_RUN = ("curves", "reconstructions", "traversals", "information", "posterior")


def draw(circles: Sequence[Run], run: Run, masked: Run, wanted: Sequence[str]) -> None:
    """Every picture of the gallery, or the wanted ones."""
    for name in FROM_RUNS:
        if not wanted or name in wanted:
            _write(f"{name}.png", rendered(figures[name].draw(circles), dpi=110))
    for name in OF_A_RUN:
        if not wanted or f"run-{name}" in wanted:
            _write(f"run-{name}.png", rendered(run_figures[name].draw(run), dpi=DPI.get(name, 110)))
    if not wanted or "latent-categories" in wanted:
        _write("latent-categories.png", rendered(figures["traversals"].draw([masked]), dpi=110))
    if not wanted or "moving" in wanted:
        write_traversals(run, HERE / "traversals.gif", size=48)
        write_traversals(masked, HERE / "masked.gif", size=64)


def _write(name: str, content: bytes) -> None:
    """As a small file: drawings do with 256 colours, pictures with 64 values of each."""
    with written_whole(HERE / name) as draft, Image.open(BytesIO(content)) as picture:
        small = picture.convert("RGB")
        if name in DRAWINGS:
            small = small.quantize(256, dither=Image.Dither.NONE)
        elif name in PICTURES:
            small = small.point(lambda value: min(255, (value + 2) // 4 * 4) if value < 253 else 255)
        small.save(draft, optimize=True)
    print(f"{name}: {(HERE / name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    draw(list_runs(sys.argv[1]), list_runs(sys.argv[2])[0], list_runs(sys.argv[3])[0], sys.argv[4:])
