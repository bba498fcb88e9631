"""The house style: one colour and marker per model everywhere, names people know, and pictures as the same bytes.

Gaussian models have dark, cool colours and discrete ones light, warm colours, so that the two families can be told
apart in grey and by everyone; the objective decides the marker.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from lddr.runs.index import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

P = ParamSpec("P")
R = TypeVar("R")

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
SUPERVISIONS = {"bce": "BCE", "l2": "L2", "cross-entropy": "cross-entropy", "masked": "masked"}

DATASETS = {  # in the order they are shown in
    "dsprites": "dSprites",
    "color_dsprites": "C-dSprites",
    "noisy_dsprites": "N-dSprites",
    "smallnorb": "SmallNORB",
    "cars3d": "Cars3D",
    "shapes3d": "Shapes3D",
    "mpi3d_toy": "MPI3D (toy)",
    "mpi3d_real": "MPI3D (real)",
    "mpi3d_realistic": "MPI3D (realistic)",
    "circles": "Circles",
    "rooms": "rooms",
}
SIX_METRICS = ("beta_vae", "factor_vae", "mig", "dci", "modularity", "sap")  # the paper's

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
    """Matplotlib's own defaults with ours on top, whatever the user's settings are; these come back afterwards."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Decorator: draw in the house style."""

    @wraps(draw)
    def drawing(*arguments: P.args, **options: P.kwargs) -> R:
        with house_style():
            return draw(*arguments, **options)

    return drawing


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches, that lays itself out; it belongs to no window and needs no closing."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def rendered(figure: "Figure", kind: str = "png", dpi: int = 150) -> bytes:
    """The figure as a PNG, SVG or PDF file: the same bytes for the same figure, without a date."""
    buffer = BytesIO()
    with house_style():  # ticks are made when they are needed: now
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=UNDATED[kind])
    return buffer.getvalue()


def model_title(model: str) -> str:
    """The name people know: "D-VAE" for dvae."""
    from lddr.models import models

    return models[model].title if model in models else model


def colour(model: str) -> str:
    return COLOURS.get(model, INK)


def marker(model: str) -> str:
    """The objective's."""
    from lddr.models import models

    return MARKERS.get(models[model].objective, "o") if model in models else "o"


def is_discrete(model: str) -> bool:
    from lddr.models import models

    return model in models and models[model].family.is_discrete


def method_title(run: Run) -> str:
    """The model with its supervision: "D-VAE, masked"."""
    title, loss = model_title(str(run.value("model"))), run.value("supervision")
    return title if loss is None else f"{title}, {SUPERVISIONS.get(str(loss), loss)}"


def dataset_title(dataset: str) -> str:
    """The name people know; of own images, the last part of their path."""
    return DATASETS.get(dataset) or Path(dataset).stem or dataset


def metric_title(metric: str) -> str:
    """A metric's or selector's name as it stands on an axis."""
    from lddr.metrics.metric import metrics

    return (metrics[metric].title if metric in metrics else metric).replace("Gap_ST", "Gap$_{ST}$")
