"""The style of all figures: fonts, the colour and the title of every model, and pictures as the same bytes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lddr.data.dataset import datasets
from lddr.latents import latents
from lddr.metrics.metric import metrics
from lddr.models import models
from lddr.objectives import objectives
from lddr.runs.index import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:  # matplotlib is imported when something is drawn
    Axes = Figure = Any


INK, MUTED, FAINT, PAPER = "#222222", "#666666", "#9a9a9a", "#ffffff"
HIGHLIGHT = "#cc3311"  # for the most important mark, such as a median
FIRST, SECOND = "#0072b2", "#d55e00"  # two directions of a grid
SEQUENTIAL, DIVERGING = "Blues", "RdBu"

TEXT, SMALL_TEXT = 10, 9  # points: legible at 96 pixels to the inch, and where a page shows a figure smaller
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": TEXT,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": TEXT,
    "axes.labelsize": TEXT,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "figure.facecolor": PAPER,
    "figure.titlesize": 12,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.7,
    "legend.fontsize": SMALL_TEXT,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": SMALL_TEXT,
    "ytick.labelsize": SMALL_TEXT,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "text.parse_math": False,  # a dollar sign in somebody's name for a factor is a dollar sign
    "svg.hashsalt": "lddr",  # the same names in every file
    "pdf.fonttype": 42,
}
ROOM = 0.04  # inches around text, as in the layout of figures
UNDATED: Any = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


@contextmanager
def house_style() -> Iterator[None]:
    """Use matplotlib's defaults and our style, regardless of the user's settings; for a `with`, or as a decorator."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, in inches, that lays itself out; it belongs to no window and needs no closing."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def paneled(
    count: int, across: int, size: tuple[float, float], room: tuple[float, float] = (0, 0), **options: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure of `count` panels, at most `across` in a row; `size` and `room` (around all) are in inches."""
    columns = min(across, count)
    rows = ceil(count / columns)
    figure = new_figure(room[0] + columns * size[0], room[1] + rows * size[1])
    panels = figure.subplots(rows, columns, squeeze=False, **options).ravel()
    for axes in panels[count:]:
        axes.set_axis_off()
    return figure, list(panels[:count])


def rendered(figure: Figure, kind: str = "png", dpi: int = 150) -> bytes:
    """Return the figure as a PNG, SVG or PDF file: the same bytes for the same figure, without a date."""
    return rendered_as((kind,), figure, dpi)[kind]


def rendered_as(kinds: Iterable[str], figure: Figure, dpi: int = 150) -> dict[str, bytes]:
    """Return the figure as files in several formats, laid out once, because layout takes longer than writing."""
    files = {}
    with house_style():  # matplotlib makes ticks only now
        area = whole_area(figure)
        figure.set_layout_engine("none")  # the layout is final
        for kind in kinds:
            buffer = BytesIO()
            figure.savefig(buffer, format=kind, dpi=dpi, metadata=UNDATED[kind], bbox_inches=area)
            files[kind] = buffer.getvalue()
    return files


def whole_area(figure: Figure) -> Any:
    """Return the area, in inches, that holds a figure and all its text, even text that sticks out."""
    from matplotlib.transforms import Bbox

    figure.draw_without_rendering()
    return Bbox.union([figure.bbox_inches, figure.get_tightbbox().padded(ROOM)])


# Continuous latents have dark, cool colours and discrete ones light, warm colours, so that both differ in grey and for
# everyone; the objective decides the hue and the marker. Parts registered later come later.
DARK = ("#0072b2", "#332288", "#117733", "#882255", "#00686e", "#5f5f26", "#444444")  # elbo, beta, annealed, factor, …
LIGHT = ("#e69f00", "#ee8866", "#d9c93f", "#f29cc0", "#cfae82", "#b5cc66", "#bbbbbb")
MARKERS = "os^DvPX<>ph*d8H"
LUMINANCE, GAMMA = (0.2126, 0.7152, 0.0722), 2.2  # of red, green and blue; of screens
GOLDEN = 0.381966  # of a full turn of the hue


def latent_order(discrete: bool) -> list[str]:
    """Return the continuous or the discrete latents in their standard order: those of named models first."""
    named = dict.fromkeys([*(models[name].latent for name in models.registered()), *latents])
    return [name for name in named if latents[name].is_discrete == discrete]


def objective_order() -> list[str]:
    """Return the objectives in their standard order: those of named models first."""
    return list(dict.fromkeys([*(models[name].objective for name in models.registered()), *objectives]))


def is_discrete(model: str) -> bool:
    return model in models and models[model].family.is_discrete


def model_order(model: str) -> tuple[bool, int, int]:
    """Return a sort key: continuous before discrete models, by latent, by objective; unknown ones last."""
    if model not in models:
        return True, len(latents), len(objectives)
    discrete, point = is_discrete(model), models[model]
    return discrete, latent_order(discrete).index(point.latent), objective_order().index(point.objective)


def colour(model: str) -> str:
    """Return the colour of a model, the same in all figures."""
    if model not in models:
        return INK
    discrete, latent, objective = model_order(model)
    palette = LIGHT if discrete else DARK
    return _with_other_hue(palette[objective % len(palette)], latent + len(palette) * (objective // len(palette)))


def _with_other_hue(base: str, turns: int) -> str:
    """Return a colour with another hue and the same luminance."""
    from colorsys import hls_to_rgb, rgb_to_hls

    from matplotlib.colors import to_hex, to_rgb

    if turns == 0:
        return base
    hue, lightness, saturation = rgb_to_hls(*to_rgb(base))
    other = np.array(hls_to_rgb((hue + turns * GOLDEN) % 1, lightness, max(saturation, 0.4))) ** GAMMA
    wanted, has = (float(light @ LUMINANCE) for light in (np.array(to_rgb(base)) ** GAMMA, other))
    mixed = other * wanted / has if has > wanted else other + (1 - other) * (wanted - has) / (1 - has)
    red, green, blue = mixed ** (1 / GAMMA)
    return to_hex((red, green, blue))


def marker(model: str) -> str:
    """Return the marker of a model's objective."""
    return MARKERS[model_order(model)[2] % len(MARKERS)]


FEW = 5  # a median of fewer runs has a mark, and points instead of a violin
FEW_MARK, FEW_MEANING = "△", "of fewer than five runs of a model: too few to conclude anything from"


def few_mark(count: int) -> str:
    """Return the mark of numbers that rest on few runs, if these are few."""
    return FEW_MARK if count < FEW else ""


def few_note(*texts: str) -> str:
    """Return a sentence that explains the mark, if one of these texts has it."""
    return f" {FEW_MARK}: {FEW_MEANING}." if any(FEW_MARK in text for text in texts) else ""


def model_title(model: str) -> str:
    """Return "D-VAE" for "dvae"."""
    return models[model].title if model in models else model


def method_title(run: Run) -> str:
    """Return the model with its supervision: "D-VAE, masked"; short losses are in capitals: "VAE, BCE"."""
    title, loss = model_title(str(run.value("model"))), str(run.value("supervision") or "")
    return f"{title}, {loss.upper() if len(loss) <= 3 else loss}" if loss else title


def dataset_title(dataset: str) -> str:
    """Return the title of a dataset; of own images, the last part of their path."""
    return datasets[dataset].title if dataset in datasets else Path(dataset).stem or dataset


def metric_title(metric: str) -> str:
    """Return a metric's name as it stands on an axis."""
    return metrics[metric].title if metric in metrics else metric
