"""The house style of figures, whatever the user's settings are, and pictures as the same bytes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:  # what draws is imported when it draws; its types are to be had here
    Axes = Figure = Any

INK, FAINT, PAPER = "#222222", "#9a9a9a", "#ffffff"
HIGHLIGHT = "#cc3311"  # for the one thing to look at, the median say
FIRST, SECOND = "#0072b2", "#d55e00"  # two directions of a grid
SEQUENTIAL, DIVERGING = "Blues", "RdBu"

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "figure.facecolor": PAPER,
    "figure.titlesize": 11,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.7,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "text.parse_math": False,  # a dollar sign in somebody's name for a factor is a dollar sign
    "svg.hashsalt": "lddr",  # else every file has other names inside
    "pdf.fonttype": 42,
}
ROOM = 0.04  # inches around text that sticks out
UNDATED: Any = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


@contextmanager
def house_style() -> Iterator[None]:
    """Matplotlib's own defaults with ours on top, whatever the user's settings are; these come back afterwards.

    It can stand before a `with` or, as `@house_style()`, above a function.
    """
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches, that lays itself out; it belongs to no window and needs no closing."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def paneled(
    count: int, across: int, size: tuple[float, float], room: tuple[float, float] = (0, 0), **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure of this many panels, at most `across` in a row; inches of each panel, and of the room around them."""
    columns = min(across, count)
    rows = ceil(count / columns)
    figure = new_figure(room[0] + columns * size[0], room[1] + rows * size[1])
    panels = figure.subplots(rows, columns, squeeze=False, **options).ravel()
    for axes in panels[count:]:
        axes.set_axis_off()
    return figure, list(panels[:count])


def rendered(figure: Figure, kind: str = "png", dpi: int = 150) -> bytes:
    """The figure as a PNG, SVG or PDF file: the same bytes for the same figure, without a date."""
    return rendered_as((kind,), figure, dpi)[kind]


def rendered_as(kinds: Iterable[str], figure: Figure, dpi: int = 150) -> dict[str, bytes]:
    """The figure as files of several kinds, laid out once, which takes longer than to write it."""
    files = {}
    with house_style():  # ticks are made when they are needed: now
        area = whole_area(figure)
        figure.set_layout_engine("none")  # all stays where it is now
        for kind in kinds:
            buffer = BytesIO()
            figure.savefig(buffer, format=kind, dpi=dpi, metadata=UNDATED[kind], bbox_inches=area)
            files[kind] = buffer.getvalue()
    return files


def whole_area(figure: Figure) -> Any:
    """The area, in inches, that holds a figure and all its text; None where nothing sticks out."""
    from matplotlib.transforms import Bbox

    figure.draw_without_rendering()
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    low, high = np.minimum(drawn.min, 0), np.maximum(drawn.max, (width, height))
    if max(*-low, *(high - (width, height))) < ROOM / 2:  # half a line of pixels
        return None
    return Bbox([low - ROOM * (low < 0), high + ROOM * (high > (width, height))])


def text_width(text: str, size: float = 9) -> float:
    """About how many inches a line of text takes."""
    return 0.6 * size / 72 * len(text)
