import pytest

from lddr.errors import UserError
from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import card_figures, figures, made
from lddr.report.traversals import LoadedRun
from tests.report.grouped import grouped, invented


def test_all_figures_of_the_paper_and_those_beyond_are_there():
    paper = {"observations", "gumbel-softmax", "circles", "circles-vae", "circles-dvae", "selectors", "efficiency"}
    paper |= {"selectors-combined", "metrics", "mig", "semi-supervised", "traversals"}
    assert paper | {"families", "curves", "rate-distortion"} == set(figures)
    assert set(card_figures) == {"curves", "reconstructions", "traversals", "information", "posterior"}


@pytest.mark.parametrize("registry", [figures, card_figures])
def test_figures_have_an_order(registry):
    places = [drawn.order for drawn in registry.in_order()]
    assert places == sorted(set(places))
    assert all(registry[drawn.name] is drawn for drawn in registry.in_order())


@pytest.mark.parametrize("name", sorted(set(figures) - {"observations", "gumbel-softmax"}))
def test_without_runs_a_figure_says_in_a_sentence_what_is_missing(name):
    with pytest.raises(UndefinedError, match=r"^(there|no) [^\n]{15,}[^.]$"):
        figures[name].make([])


@pytest.mark.parametrize("name", sorted(set(card_figures) - {"information"}))
def test_a_run_without_files_cannot_be_drawn(name):
    with pytest.raises(UserError):
        card_figures[name].make(LoadedRun(invented(resolution=16)))


@pytest.mark.parametrize("name", ["observations", "gumbel-softmax"])
def test_the_papers_sketches_are_neither_shown_nor_missed_where_all_images_are_ones_own(name):
    missing = {}
    own = grouped([invented(dataset="my/cats")])
    assert list(made([figures[name]], own, missing)) == []
    assert missing == {}
    both = grouped([invented(dataset="my/cats"), invented(dataset="rooms")])
    assert len(list(made([figures[name]], both, missing))) == 1
