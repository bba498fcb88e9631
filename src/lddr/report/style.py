"""The house style of figures: one colour and marker per model everywhere, and pictures as the same bytes.

Gaussian models have dark, cool colours and discrete ones light, warm colours, so that the two families can be told
apart in grey and by everyone; the objective decides the marker.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from math import ceil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, PAPER = "#222222", "#9a9a9a", "#ffffff"
HIGHLIGHT = "#cc3311"  # for the one thing to look at, the median say
FIRST, SECOND = "#0072b2", "#d55e00"  # two directions of a grid
SEQUENTIAL, DIVERGING = "Blues", "RdBu"

COLOURS = {
    "vae": "#0072b2",
    "beta-vae": "#332288",
    "annealed-vae": "#117733",
    "factor-vae": "#882255",
    "beta-tcvae": "#00686e",
    "dip-vae-i": "#5f5f26",
    "dip-vae-ii": "#444444",
    "dvae": "#e69f00",
    "beta-dvae": "#ee8866",
    "annealed-dvae": "#d9c93f",
    "factor-dvae": "#f29cc0",
    "tc-dvae": "#cfae82",
    "dip-dvae-i": "#b5cc66",
    "dip-dvae-ii": "#bbbbbb",
}
MARKERS = {"elbo": "o", "beta": "s", "annealed": "^", "factor": "D", "tc": "v", "dip-i": "P", "dip-ii": "X"}
HATCHES = {"masked": "////", "l2": "...."}  # supervision beside the usual one

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
    "svg.hashsalt": "lddr",  # else every file has other names inside
    "pdf.fonttype": 42,
}
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


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches, that lays itself out; it belongs to no window and needs no closing."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def paneled(
    count: int, across: int, size: tuple[float, float], room: tuple[float, float] = (0, 0), **options: Any
) -> tuple["Figure", list["Axes"]]:
    """A figure of this many panels, at most `across` in a row; inches of each panel, and of the room around them."""
    columns = min(across, count)
    rows = ceil(count / columns)
    figure = new_figure(room[0] + columns * size[0], room[1] + rows * size[1])
    panels = figure.subplots(rows, columns, squeeze=False, **options).ravel()
    for axes in panels[count:]:
        axes.set_axis_off()
    return figure, list(panels[:count])


def rendered(figure: "Figure", kind: str = "png", dpi: int = 150) -> bytes:
    """The figure as a PNG, SVG or PDF file: the same bytes for the same figure, without a date."""
    buffer = BytesIO()
    with house_style():  # ticks are made when they are needed: now
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=UNDATED[kind])
    return buffer.getvalue()


def colour(model: str) -> str:
    return COLOURS.get(model, INK)


def marker(model: str) -> str:
    """The objective's."""
    from lddr.models import models

    return MARKERS.get(models[model].objective, "o") if model in models else "o"


def is_discrete(model: str) -> bool:
    from lddr.models import models

    return model in models and models[model].family.is_discrete


def house_place(model: str) -> int:
    """The place of a model in tables and figures: Gaussian ones, then discrete ones."""
    return list(COLOURS).index(model) if model in COLOURS else len(COLOURS)
