"""Draw the gallery again: python docs/gallery/draw.py [--circles RUNS] [--masked RUN] [FIGURE…]

Scores are those of results/, and the model of the card is the shipped rooms-dvae. Latent spaces and training curves
need the runs of study.toml (--circles), the figure of latent categories a semi-supervised run (--masked).
"""

from argparse import ArgumentParser
from io import BytesIO
from pathlib import Path

from PIL import Image

from lddr.files import written_whole
from lddr.report.exhibits import card_figures, figures
from lddr.report.groups import Group, collect
from lddr.report.style import rendered
from lddr.report.traversals import LoadedRun, animation
from lddr.runs.folder import PRETRAINED
from lddr.runs.index import Run, list_runs, read_run
from lddr_paper.results.tables import read_runs

HERE = Path(__file__).parent
CIRCLES = ("circles", "circles-vae", "circles-dvae", "curves")
STUDIES = {"semi-supervised": ("labels",), "efficiency": ("efficiency", "families")}
FAMILIES = ("families", "penalties")  # the studies of all other figures of scores
PICTURES = ("run-traversals.png", "run-reconstructions.png", "traversals.png")


def by_dataset(runs: list[Run]) -> list[Group]:
    datasets = dict.fromkeys(str(run.value("dataset")) for run in runs)
    return [
        Group(name, tuple(run for run in runs if run.value("dataset") == name), {"dataset": name}) for name in datasets
    ]


def draw(circles: Path | None, masked: Path | None, wanted: list[str]) -> None:
    """Draw every picture of the gallery whose runs are given, or the wanted ones."""
    folders = dict.fromkeys(CIRCLES, circles) | {"traversals": masked}
    shown = [figure for figure in figures.in_order() if figure.name != "families"]  # which needs two models
    for figure in shown:
        place = folders.get(figure.name)
        if (wanted and figure.name not in wanted) or (figure.name in folders and place is None):
            continue
        runs = (
            by_dataset(read_runs(*STUDIES.get(figure.name, FAMILIES)))
            if place is None
            else collect(list_runs(place)).main
        )
        _write(f"{figure.name}.png", rendered(figure.make(runs).figure, dpi=110))
    model = LoadedRun(read_run(PRETRAINED / "rooms-dvae"))
    for card in card_figures.in_order():
        if not wanted or f"run-{card.name}" in wanted:
            _write(f"run-{card.name}.png", rendered(card.make(model).figure, dpi=96))
    if not wanted or "moving" in wanted:
        _write_moving("traversals.gif", model, 80)
        if masked is not None:
            _write_moving("masked.gif", LoadedRun(list_runs(masked)[0]), 64)


def _write_moving(name: str, run: LoadedRun, size: int) -> None:
    with written_whole(HERE / name) as draft:
        draft.write_bytes(animation(run, size))


def _write(name: str, content: bytes) -> None:
    """Write a small file: drawings with 256 colours, pictures with 64 values of each."""
    with written_whole(HERE / name) as draft, Image.open(BytesIO(content)) as picture:
        small = picture.convert("RGB")
        if name in PICTURES:
            small = small.point(lambda value: min(255, (value + 2) // 4 * 4) if value < 253 else 255)
        else:
            small = small.quantize(256, dither=Image.Dither.NONE)
        small.save(draft, optimize=True)
    print(f"{name}: {(HERE / name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--circles", type=Path)
    parser.add_argument("--masked", type=Path)
    parser.add_argument("figures", nargs="*")
    given = parser.parse_args()
    draw(given.circles, given.masked, given.figures)
