from io import BytesIO
from itertools import combinations, pairwise
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from PIL import Image

from lddr.data.dataset import datasets
from lddr.latents import latents
from lddr.latents.categorical import Categorical
from lddr.latents.gaussian import Gaussian
from lddr.models import models
from lddr.objectives import objectives
from lddr.objectives.elbo import Elbo
from lddr.report import style
from lddr.report.exhibits import figures, make_all
from lddr.report.style import DARK, LIGHT, MARKERS, colour, is_discrete, marker, model_order, objective_order
from lddr.runs.index import Run
from lddr_paper import latent_figures
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
    """Numbers next to an axis may lie outside its limits, where they are not drawn."""
    return any(letter.isalpha() for letter in text.get_text())


def sticking_out(figure):
    """The texts that a picture of the figure would cut."""
    area = style.whole_area(figure)
    with style.house_style():
        figure.draw_without_rendering()
        left, bottom, right, top = area.extents
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
    assert sticking_out(figure) == []
    with Image.open(BytesIO(style.rendered(figure, dpi=100))) as picture:
        assert picture.width > 250
        assert picture.height > 200


def test_a_figure_that_holds_its_text_keeps_its_size():
    with style.house_style():
        figure = style.new_figure(3, 2)
        figure.subplots().set_title("short")
    with Image.open(BytesIO(style.rendered(figure, dpi=100))) as picture:
        assert picture.size == (300, 200)


@pytest.mark.parametrize(
    ("seeds", "names"),
    [
        pytest.param(1, ["mig"], marks=pytest.mark.long),
        (5, ["mig", "dci"]),
        pytest.param(13, ["mig", "dci", "sap"], marks=pytest.mark.long),
        pytest.param(40, ["mig"], marks=pytest.mark.long),
    ],
)
def test_no_figure_cuts_its_text_at_any_number_of_runs(seeds, names, monkeypatch):
    grid = np.stack(np.meshgrid(np.arange(14.0), np.arange(14.0), indexing="ij"), axis=-1)
    monkeypatch.setattr(latent_figures, "space_of", lambda run: grid)
    scores = [
        {"gap": seed, "kl": 5.0, "elbo": -14.0 - seed} | dict.fromkeys(names, 0.1 + seed / 99) for seed in range(seeds)
    ]
    runs = [
        invented(model, dataset, found, seed=seed)
        for model in ("vae", "dvae", "factor-vae", "factor-dvae")
        for dataset in ("circles", "cars3d")
        for seed, found in enumerate(scores)
    ]
    drawn = [one for _, one in make_all([figures[name] for name in DRAWN], grouped(runs), {})]
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


# Linear RGB as people without the cones for red (protan), green (deutan) or blue (tritan) light see it: Viénot,
# Brettel & Mollon 1999 for the first two, and a common linear map for the third.
LESS_COLOUR = {
    "protan": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
    "deutan": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
    "tritan": [[1, 0.14461, -0.14461], [0, 0.85924, 0.14076], [0, 0.85924, 0.14076]],
}


def lightness(colour: np.ndarray) -> float:
    """CIE L* of linear RGB."""
    luminance = float(np.array([0.2126, 0.7152, 0.0722]) @ colour)
    return 116 * np.cbrt(luminance) - 16


def linear(colour: str) -> np.ndarray:
    values = np.array(to_rgb(colour))
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


@pytest.fixture
def strangers(monkeypatch):
    """Two more families, one of each kind, and nine more objectives: the names of all points of the grid."""
    for registry in (latents, objectives):
        list(registry)  # filled
        monkeypatch.setattr(registry, "_things", dict(registry._things))
    for name, base in (("ladder", Categorical), ("laplace", Gaussian)):
        monkeypatch.setitem(latents._things, name, type(name, (base,), {"name": name}))
    for number in range(9):
        monkeypatch.setitem(objectives._things, f"a-{number}", type(f"A{number}", (Elbo,), {"name": f"a-{number}"}))
    return [models.name_of(family, goal) for family in latents for goal in objectives]


def test_models_look_as_they_always_did():
    names = ["vae", "beta-vae", "annealed-vae", "factor-vae", "beta-tcvae", "dip-vae-i", "dip-vae-ii"]
    assert [colour(name) for name in names] == list(DARK)
    names += ["dvae", "beta-dvae", "annealed-dvae", "factor-dvae", "tc-dvae", "dip-dvae-i", "dip-dvae-ii"]
    assert [colour(name) for name in names[7:]] == list(LIGHT)
    assert [marker(name) for name in names] == 2 * list(MARKERS[:7])
    names += ["qvae", "factor-qvae", "fsq-ae", "tripod", "qlae", "vq-vae", "one-hot-vae"]  # what came later
    names[14:14] = ["ada-dvae", "ada-ml-dvae"]
    names[7:7] = ["ada-gvae", "ada-ml-vae", "von-mises-vae"]
    assert sorted(models, key=model_order) == names


def test_a_new_family_or_objective_has_looks_of_its_own_and_changes_no_others(strangers):
    assert len({colour(name) for name in strangers}) == len(strangers) == len(latents) * len(objectives)
    assert colour("factor-dvae") == "#f29cc0"
    assert colour("beta-vae") == "#332288"
    assert len({marker(models.name_of("ladder", goal)) for goal in objective_order()[:15]}) == 15
    assert model_order("dip-vae-ii") < model_order("laplace+elbo") < model_order("dvae") < model_order("ladder+elbo")


def test_what_this_version_does_not_know_comes_last():
    assert colour("mine") == "#222222"
    assert max([*models, "mine"], key=model_order) == "mine"


def test_in_grey_every_gaussian_model_is_darker_than_every_discrete_one(strangers):
    grey = {name: lightness(linear(colour(name))) for name in strangers}
    dark = [value for name, value in grey.items() if not is_discrete(name)]
    light = [value for name, value in grey.items() if is_discrete(name)]
    assert max(dark) + 15 < min(light)


@pytest.mark.parametrize("kind", LESS_COLOUR)
def test_the_families_differ_for_people_who_see_fewer_colours(kind):
    seen = {name: np.array(LESS_COLOUR[kind]) @ linear(colour(name)) for name in models}
    for objective in objectives:
        same = [name for name in models if models[name].objective == objective]
        light = {name: lightness(seen[name].clip(0, 1)) for name in same}
        for one, other in combinations(same, 2):
            assert is_discrete(one) == is_discrete(other) or abs(light[one] - light[other]) > 15, (one, other)


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ("mpi3d_real", "MPI3D (real)"),
        ("dsprites", "dSprites"),
        ("somewhere/my images", "my images"),
        ("photos.npz", "photos"),
    ],
)
def test_datasets_have_names_people_know(given, title):
    assert style.dataset_title(given) == title


def test_no_two_datasets_have_one_name():
    assert len({style.dataset_title(name) for name in datasets}) == len(datasets)


def test_models_and_metrics_have_names_people_know():
    def run(**settings):
        return Run(Path("run"), "finished", settings, {})

    assert style.method_title(run(model="dvae")) == "D-VAE"
    assert style.method_title(run(model="vae", supervision="l2")) == "VAE, L2"
    assert style.model_title("mine") == "mine"
    assert style.metric_title("gap") == "Gap_ST"
