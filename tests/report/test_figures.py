from pathlib import Path

import pytest

from lddr.metrics.metric import UndefinedError
from lddr.report.figures import (
    by_dataset,
    figures,
    in_order,
    model_of,
    run_figures,
    scores_of,
    supervised,
    unsupervised,
)
from lddr.runs.index import Run


def run(dataset="circles", state="finished", scores=None, **settings):
    return Run(Path("nowhere/run"), state, {"dataset": dataset, "model": "dvae"} | settings, scores or {})


def test_all_figures_of_the_paper_and_those_beyond_are_there():
    paper = {"observations", "gumbel-softmax", "circles", "circles-vae", "circles-dvae", "selectors", "efficiency"}
    paper |= {"selectors-combined", "metrics", "mig", "semi-supervised", "traversals"}
    assert paper | {"curves", "rate-distortion"} == set(figures)
    assert set(run_figures) == {"curves", "reconstructions", "traversals", "information", "posterior"}


@pytest.mark.parametrize("registry", [figures, run_figures])
def test_figures_have_an_order(registry):
    places = [drawn.order for drawn in in_order(registry)]
    assert places == sorted(set(places))
    assert all(registry[drawn.name] is drawn for drawn in in_order(registry))


@pytest.mark.parametrize("name", sorted(set(figures) - {"observations", "gumbel-softmax"}))
def test_without_runs_a_figure_says_in_a_sentence_what_is_missing(name):
    with pytest.raises(UndefinedError, match=r"^(there|no) [^\n]{15,}[^.]$"):
        figures[name].draw([])


@pytest.mark.parametrize("name", sorted(set(run_figures) - {"information"}))
def test_a_run_without_files_cannot_be_drawn(name):
    with pytest.raises(UndefinedError):
        run_figures[name].draw(run(resolution=16))


def test_runs_are_sorted_by_state_and_labels():
    plain, labelled, unfinished = run(), run(supervision="masked"), run(state="training")
    assert unsupervised([plain, labelled, unfinished]) == [plain]
    assert supervised([plain, labelled, unfinished]) == [labelled]


def test_datasets_come_in_the_papers_order_then_by_name():
    given = ["zebras", "circles", "mpi3d_real", "apples", "dsprites", "circles"]
    groups = by_dataset([run(dataset, seed=seed) for seed, dataset in enumerate(given)])
    assert list(groups) == ["dsprites", "mpi3d_real", "circles", "apples", "zebras"]
    assert [member.settings["seed"] for member in groups["circles"]] == [1, 5]


@pytest.mark.parametrize("setting", ["steps", "precision", "resolution", "checksum"])
def test_runs_that_cannot_be_compared_are_refused(setting):
    with pytest.raises(UndefinedError, match=f"the runs on circles differ in {setting} \\(1, 2\\)"):
        by_dataset([run(**{setting: 1}), run(**{setting: 2})])
    assert len(by_dataset([run("circles", **{setting: 1}), run("rooms", **{setting: 2})])) == 2


def test_scores_are_those_that_are_there():
    assert scores_of([run(scores={"mig": 0.5}), run(), run(scores={"mig": 0.1})], "mig") == [0.5, 0.1]


def test_a_model_that_is_gone_is_a_sentence():
    with pytest.raises(UndefinedError, match="the model of run cannot be loaded: there is no model"):
        model_of(run())
