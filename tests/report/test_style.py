from io import BytesIO
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image

from lddr.report import style
from lddr.report.exhibits import figures, made
from lddr_paper import latent_figures as latent_spaces
from tests.report.grouped import gapped_runs, grouped, invented

DRAWN = [
    "circles",
    "circles-vae",
    "circles-dvae",
    "selectors",
    "selectors-combined",
    "metrics",
    "mig",
    "rate-distortion",
]


def test_drawings_do_not_depend_on_the_users_settings_and_leave_them_alone():
    @style.house_style()
    def draw():
        figure = style.new_figure(3, 2)
        figure.subplots().set_title("title")
        return figure

    expected = style.rendered(draw())
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black"}):
        assert style.rendered(draw()) == expected
        assert matplotlib.rcParams["font.size"] == 30


@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_same_figure_is_the_same_bytes(kind, start):
    figure = style.new_figure(2, 2)
    figure.subplots().plot([1, 2, 3])
    first = style.rendered(figure, kind)
    assert first.startswith(start)
    assert style.rendered(figure, kind) == first
    assert b"Date" not in first


@pytest.mark.parametrize("text", ["$", "$$", "a $\\frac{1$ b", "x_1 and {y}", "100 % & #"])
def test_text_stands_as_it_is_written(text):
    with style.house_style():
        figure = style.new_figure(2, 2)
        figure.subplots().set(title=text, xlabel=text)
    assert style.rendered(figure)
    assert style.rendered(figure, "svg")


def _has_letters(text):
    """Numbers beside an axis may lie outside its limits, where they are not drawn."""
    return any(letter.isalpha() for letter in text.get_text())


def sticking_out(figure):
    """The texts that a picture of the figure would cut."""
    area = style.whole_area(figure)
    with style.house_style():
        figure.draw_without_rendering()
        size = figure.get_size_inches()
        left, bottom, right, top = (0, 0, *size) if area is None else area.extents
        found = []
        for text in figure.findobj(Text):
            if text.get_visible() and _has_letters(text):
                box = text.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
                if min(box.x0 - left, box.y0 - bottom, right - box.x1, top - box.y1) < -0.03:
                    found.append(text.get_text())
        return found


def test_a_title_wider_than_its_figure_is_not_cut():
    with style.house_style():
        figure = style.new_figure(1, 1)
        figure.subplots().set_ylabel("a label that is much longer than the figure is high")
        figure.suptitle("a title that is much longer than the figure is wide")
    assert style.whole_area(figure) is not None
    assert sticking_out(figure) == []
    with Image.open(BytesIO(style.rendered(figure, dpi=100))) as picture:
        assert picture.width > 250
        assert picture.height > 200


def test_a_figure_that_holds_its_text_keeps_its_size():
    with style.house_style():
        figure = style.new_figure(3, 2)
        figure.subplots().set_title("short")
    assert style.whole_area(figure) is None
    with Image.open(BytesIO(style.rendered(figure, dpi=100))) as picture:
        assert picture.size == (300, 200)


@pytest.mark.parametrize(
    ("seeds", "names"),
    [(1, ["mig"]), (2, ["mig"]), (13, ["mig", "dci", "sap"]), pytest.param(40, ["mig"], marks=pytest.mark.long)],
)
def test_no_figure_cuts_its_text_at_any_number_of_runs(seeds, names, monkeypatch):
    grid = np.stack(np.meshgrid(np.arange(14.0), np.arange(14.0), indexing="ij"), axis=-1)
    for module in (latent_spaces,):
        monkeypatch.setattr(module, "space_of", lambda run: grid)
    scores = [
        {"gap": seed, "kl": 5.0, "elbo": -14.0 - seed} | dict.fromkeys(names, 0.1 + seed / 99) for seed in range(seeds)
    ]
    runs = [
        invented(model, dataset, found, seed=seed)
        for model in ("vae", "dvae", "factor-vae", "factor-dvae")
        for dataset in ("circles", "rooms", "cars3d")
        for seed, found in enumerate(scores)
    ]
    drawn = [one for _, one in made([figures[name] for name in DRAWN], grouped(runs), {})]
    assert len(drawn) >= 4
    for one in drawn:
        assert sticking_out(one.figure) == []


def test_titles_of_neighbours_do_not_run_into_each_other():
    runs = [run for dataset in ("circles", "rooms", "cars3d") for run in gapped_runs(dataset)]
    for run in runs:
        del run.scores["dci"]  # a map of one column
    figure = figures["selectors"].make(grouped(runs)).figure
    figure.draw_without_rendering()
    titles = [axes.title.get_window_extent() for axes in figure.axes[:3]]
    assert all(left.x1 < right.x0 for left, right in pairwise(titles))
