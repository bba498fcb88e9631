import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from lddr.models import models
from lddr.report import style

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


def test_every_model_has_a_colour_of_its_own_and_every_objective_a_marker():
    assert set(style.COLOURS) == set(models)
    assert len(set(style.COLOURS.values())) == len(models)
    assert {models[name].objective for name in models} == set(style.MARKERS)
    assert len(set(style.MARKERS.values())) == len(style.MARKERS)


def test_in_grey_every_gaussian_model_is_darker_than_every_discrete_one():
    grey = {name: lightness(linear(colour)) for name, colour in style.COLOURS.items()}
    dark = [value for name, value in grey.items() if not style.is_discrete(name)]
    light = [value for name, value in grey.items() if style.is_discrete(name)]
    assert max(dark) + 15 < min(light)


@pytest.mark.parametrize("kind", LESS_COLOUR)
def test_the_families_differ_for_people_who_see_fewer_colours(kind):
    seen = {name: np.array(LESS_COLOUR[kind]) @ linear(colour) for name, colour in style.COLOURS.items()}
    for objective in style.MARKERS:
        pair = [name for name in models if models[name].objective == objective]
        assert abs(lightness(seen[pair[0]].clip(0, 1)) - lightness(seen[pair[1]].clip(0, 1))) > 15, pair


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
