"""The style of all figures: fonts, the colour and the title of every model, and pictures as the same bytes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lddr.latents import latents
from lddr.models import models
from lddr.objectives import objectives
from lddr.runs.index import Run

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


# of the objectives in the order in which models have names: elbo, beta, annealed, factor, tc, dip-i, dip-ii
DARK = ("#0072b2", "#332288", "#117733", "#882255", "#00686e", "#5f5f26", "#444444")
LIGHT = ("#e69f00", "#ee8866", "#d9c93f", "#f29cc0", "#cfae82", "#b5cc66", "#bbbbbb")
MARKERS = "os^DvPX<>ph*d8H"
HATCHES = ("", "....", "xxxx", "++++")
MASKED = "////"
LUMINANCE, GAMMA, GOLDEN = (0.2126, 0.7152, 0.0722), 2.2, 0.381966  # of red, green and blue; of screens; part of a turn


def families(discrete: bool) -> list[str]:
    """The continuous or the discrete latent families in the order of the house."""
    named = _first_named((models[name].latent for name in models.registered()), latents)
    return [name for name in named if latents[name].is_discrete == discrete]


def goals() -> list[str]:
    """The objectives in the order of the house."""
    return _first_named((models[name].objective for name in models.registered()), objectives)


def _first_named(named: Iterable[str], known: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*named, *known]))


def is_discrete(model: str) -> bool:
    return model in models and models[model].family.is_discrete


def house_place(model: str) -> tuple[bool, int, int]:
    """By which models are sorted: continuous before discrete ones, by family, by objective; strangers last."""
    if model not in models:
        return True, len(latents), len(objectives)
    discrete = is_discrete(model)
    return discrete, families(discrete).index(models[model].latent), goals().index(models[model].objective)


def colour(model: str) -> str:
    """The same everywhere."""
    if model not in models:
        return INK
    discrete, family, goal = house_place(model)
    palette = LIGHT if discrete else DARK
    return _turned(palette[goal % len(palette)], family + len(palette) * (goal // len(palette)))


def _turned(shown: str, turns: int) -> str:
    """The colour with another hue that is as light."""
    from colorsys import hls_to_rgb, rgb_to_hls

    from matplotlib.colors import to_hex, to_rgb

    if turns == 0:
        return shown
    hue, lightness, saturation = rgb_to_hls(*to_rgb(shown))
    other = np.array(hls_to_rgb((hue + turns * GOLDEN) % 1, lightness, max(saturation, 0.4))) ** GAMMA
    wanted, has = (float(light @ LUMINANCE) for light in (np.array(to_rgb(shown)) ** GAMMA, other))
    mixed = other * wanted / has if has > wanted else other + (1 - other) * (wanted - has) / (1 - has)
    red, green, blue = mixed ** (1 / GAMMA)
    return to_hex((red, green, blue))


def marker(model: str) -> str:
    """The objective's."""
    return MARKERS[house_place(model)[2] % len(MARKERS)]


def hatch(model: str, loss: str) -> str:
    """The supervision's; the usual one of a family has none."""
    if model not in models or loss in models[model].family.masking:
        return MASKED
    others = [name for name in models[model].family.supervisions if name not in models[model].family.masking]
    return HATCHES[(others.index(loss) if loss in others else -1) % len(HATCHES)]


FEW = 5  # runs from which on a median is shown without a mark, and as a violin
MARK = "△"
MEANING = "of fewer than five runs of a model: too few to conclude anything from"


def few_mark(count: int) -> str:
    """The mark, if these are few."""
    return MARK if count < FEW else ""


def few_told(*texts: str) -> str:
    """A sentence that explains the mark, if one of these texts has it."""
    return f" {MARK}: {MEANING}." if any(MARK in text for text in texts) else ""


ABBREVIATED = 3  # letters of a loss that is written in capitals: BCE, L2


def model_title(model: str) -> str:
    """Of dvae: "D-VAE"."""
    from lddr.models import models

    return models[model].title if model in models else model


def method_title(run: Run) -> str:
    """The model with its supervision: "D-VAE, masked"."""
    title, loss = model_title(str(run.value("model"))), run.value("supervision")
    if loss is None:
        return title
    return f"{title}, {str(loss).upper() if len(str(loss)) <= ABBREVIATED else loss}"


def dataset_title(dataset: str) -> str:
    """Of own images, the last part of their path."""
    from lddr.data.dataset import datasets

    return datasets[dataset].title if dataset in datasets else Path(dataset).stem or dataset


def metric_title(metric: str) -> str:
    """A metric's name as it stands on an axis."""
    from lddr.metrics.metric import metrics

    return metrics[metric].title if metric in metrics else metric
