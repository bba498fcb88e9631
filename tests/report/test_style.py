import matplotlib
import pytest

from lddr.report import style


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
