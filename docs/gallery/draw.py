"""Draw the gallery again.

python docs/gallery/draw.py
    the figures of scores, from the tables below results/
python docs/gallery/draw.py CIRCLES-RUNS RUN MASKED-RUN [FIGURE…]
    the others: CIRCLES-RUNS are those of study.toml, RUN is any model, MASKED-RUN a semi-supervised one
"""

import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from PIL import Image

from lddr.files import written_whole
from lddr.report.exhibits import card_figures, figures
from lddr.report.groups import Group, collect
from lddr.report.style import rendered
from lddr.report.traversals import LoadedRun, animation
from lddr.runs.index import list_runs
from lddr_paper.results.tables import read_runs

HERE = Path(__file__).parent
DRAWINGS = ("circles.png", "circles-vae.png", "circles-dvae.png", "metrics.png")
FROM_TABLES = {  # figure → the studies below results/ that it is drawn from
    "metrics": ("families",),
    "mig": ("families", "penalties"),
    "selectors": ("families",),
    "selectors-combined": ("families", "penalties"),
    "efficiency": ("efficiency",),
    "semi-supervised": ("labels",),
}
PICTURES = ("run-traversals.png", "run-reconstructions.png")
DPI = {"traversals": 80}


def draw_from_tables() -> None:
    """Draw the figures of scores."""
    for name, studies in FROM_TABLES.items():
        runs = read_runs(*studies)
        groups = [
            Group(dataset, tuple(run for run in runs if run.value("dataset") == dataset), {"dataset": dataset})
            for dataset in ("dsprites", "rooms")
        ]
        drawn = figures[name].make([group for group in groups if group.runs])
        _write(f"{name}.png", rendered(drawn.figure, dpi=110))


def draw(circles: Sequence[Group], masked: Sequence[Group], run: LoadedRun, wanted: Sequence[str]) -> None:
    """Draw every other picture of the gallery, or the wanted ones."""
    for figure in figures.in_order():
        if figure.name not in FROM_TABLES and (not wanted or figure.name in wanted):
            groups = masked if figure.name == "traversals" else circles
            _write(f"{figure.name}.png", rendered(figure.make(groups).figure, dpi=110))
    for card in card_figures.in_order():
        if not wanted or f"run-{card.name}" in wanted:
            _write(f"run-{card.name}.png", rendered(card.make(run).figure, dpi=DPI.get(card.name, 110)))
    if not wanted or "moving" in wanted:
        _write_moving("traversals.gif", run, 48)
        _write_moving("masked.gif", LoadedRun(masked[0].runs[0]), 64)


def _write_moving(name: str, run: LoadedRun, size: int) -> None:
    with written_whole(HERE / name) as draft:
        draft.write_bytes(animation(run, size))


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
    if not sys.argv[1:]:
        draw_from_tables()
        sys.exit()
    circles, masked = (collect(list_runs(folder)).main for folder in (sys.argv[1], sys.argv[3]))
    draw(circles, masked, LoadedRun(list_runs(sys.argv[2])[0]), sys.argv[4:])
