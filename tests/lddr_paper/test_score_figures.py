from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgba

from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import figures
from lddr.report.style import colour, marker
from lddr.runs.index import read_run
from lddr_paper.score_figures import (
    COLUMNS,
    HeatMap,
    correlations,
    efficiency_maps,
    heat_maps,
    profile,
    selector_maps,
    typical,
)
from tests.report.grouped import gapped_runs, grouped, invented, labelled, runs_of


def halves(axes):
    return [(to_rgba(half.get_facecolor()[0]), half.get_paths()[0].get_extents()) for half in axes.collections]


def points(axes):
    return [line for line in axes.lines if line.get_marker() == "o"]


def medians(axes):
    return [line.get_ydata()[0] for line in axes.lines if line.get_marker() != "o"]


def test_gaussian_halves_lie_to_the_left_and_discrete_ones_to_the_right(compared_runs):
    """Five runs of each model on circles; two and three on rooms, which are too few for a violin."""
    drawn = figures["mig"].make(grouped(compared_runs))
    (axes,) = drawn.figure.axes
    assert axes.get_title() == "D-VAE better in 1 of 2 cases△"
    assert axes.get_ylabel() == "MIG"
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["Circles\n+100 %\nn = 5, 5", "rooms\n−25 %△\nn = 2, 3"]
    extents = {"vae": (0.1, 0.9), "dvae": (0.3, 0.5)}
    for (shade, box), (model, (low, high)) in zip(halves(axes), extents.items(), strict=True):
        assert shade[:3] == to_rgba(colour(model))[:3]
        assert (box.x0 >= 0) if model == "dvae" else (box.x1 <= 0)
        assert (box.y0, box.y1) == pytest.approx((low, high))
    assert medians(axes) == pytest.approx([0.2, 0.4, 0.4, 0.3])
    assert [sorted(line.get_ydata()) for line in points(axes)[2:]] == [[0.3, 0.5], [0.1, 0.3, 0.7]]
    assert max(points(axes)[2].get_xdata()) < 1 < min(points(axes)[3].get_xdata())
    assert "△: of fewer than five runs of a model" in drawn.caption


def test_every_pair_of_models_has_a_panel(compared_runs):
    more = [
        *compared_runs,
        *runs_of("factor-vae", "circles", "mig", (0.1, 0.2)),
        *runs_of("factor-dvae", "circles", "mig", (0.5, 0.6)),
    ]
    titles = [axes.get_title() for axes in figures["mig"].make(grouped(more)).figure.axes]
    assert titles == ["D-VAE better in 1 of 2 cases△", "FactorDVAE better in 1 of 1 cases△"]


def test_datasets_are_rows_and_metrics_columns(compared_runs):
    more = [*compared_runs, *runs_of("vae", "rooms", "sap", (0.1, 0.2)), *runs_of("dvae", "rooms", "sap", (0.5, 0.6))]
    drawn = figures["metrics"].make(grouped(more))
    figure = drawn.figure
    shown = np.array([axes.axison for axes in figure.axes]).reshape(2, 2)
    assert shown.tolist() == [[True, False], [True, True]]  # circles has no SAP
    assert [axes.get_ylabel() for axes in np.reshape(figure.axes, (2, 2))[:, 0]] == ["Circles", "rooms"]
    assert [axes.get_title() for axes in figure.axes] == ["MIG", "", "", "SAP"]
    assert figure.axes[3].get_xlabel() == "+267 %△\nn = 2, 2"
    assert figure.legends[0].get_title().get_text().startswith("D-VAE better in 2 of 3 cases△")
    assert drawn.caption.endswith("the discrete model is better in 2 of 3 cases△.")


def run(name, mig, **settings):
    scores = {"elbo": -1.0} | ({} if mig is None else {"mig": mig})
    return invented(scores=scores, folder=Path(name), **settings)


def test_the_median_of_each_family_is_shown_and_not_the_best():
    discrete = [run(f"d{mig}", mig, model="dvae") for mig in (0.9, 0.1, 0.5)]
    gaussian = [run(f"g{mig}", mig, model="vae") for mig in (0.4, 0.3)]
    others = [run("f", 0.99, model="factor-dvae"), run("s", 0.99, model="dvae", supervision="masked")]
    _, chosen = typical(grouped([*discrete, *gaussian, *others]))
    assert [each.name for each in chosen] == ["d0.5", "g0.3"]


def test_the_elbo_decides_where_some_run_has_no_mig():
    discrete = [run("a", None, model="dvae"), run("b", 0.9, model="dvae"), run("c", 0.1, model="dvae")]
    _, chosen = typical(grouped([*discrete, run("v", 0.2, model="vae")]))
    assert chosen[0].name == "b"  # equal ELBOs: by name


def test_runs_of_older_versions_go_by_their_elbo_without_noise():
    older = [
        invented(model=model, scores={"elbo_noiseless": bound}, folder=Path(f"{model}{bound}"))
        for model, bound in (("dvae", -9.0), ("dvae", -5.0), ("dvae", -1.0), ("vae", -3.0))
    ]
    _, chosen = typical(grouped(older))
    assert [each.name for each in chosen] == ["dvae-5.0", "vae-3.0"]


def test_one_family_alone_is_not_compared_with_itself():
    with pytest.raises(UndefinedError, match="side by side"):
        typical(grouped([run("d", 0.5, model="dvae"), run("f", 0.5, model="factor-vae")]))


def test_both_blocks_are_drawn_with_their_models_above(trained):
    drawn = figures["families"].make(grouped(map(read_run, trained)))
    for half, title in zip(drawn.figure.subfigs, ("D-VAE", "VAE"), strict=True):
        assert half.get_suptitle().startswith(title)
        start, first, *_ = np.reshape(half.axes, (-1, COLUMNS))
        assert [len(axes.images) for axes in start[:3]] == [1, 1, 0]  # the image and its reconstruction
        assert [len(axes.images) for axes in first] == COLUMNS * [1]
    assert "median" in drawn.caption


def task_run(seed, dataset="circles", model="dvae", **scores):
    named = {name.replace("__", "."): value for name, value in scores.items()}
    return invented(model, dataset, seed=seed, scores=named)


def test_efficiency_has_datasets_side_by_side_for_each_learner():
    made = [
        task_run(s, mig=m, dci=-m, downstream_logistic__efficiency=e)
        for s, (m, e) in enumerate(((1, 1), (2, 3), (3, 2)))
    ]
    made += [task_run(s, "rooms", mig=s, downstream_logistic__efficiency=-s) for s in range(3)]
    made += [
        task_run(s, model="vae", mig=-m, downstream_logistic__efficiency=m) for s, m in enumerate(range(9))
    ]  # no matter
    (found,) = efficiency_maps(grouped(made))
    assert (found.title, found.rows, found.columns) == ("logistic regression", ("MIG", "DCI"), ("Circles△", "rooms△"))
    assert found.values == pytest.approx(np.array([[0.5, -1], [-0.5, np.nan]]), nan_ok=True)
    made = [task_run(0, mig=1, downstream_boosting__efficiency=1.0)]
    with pytest.raises(
        UndefinedError, match="no 3 runs of the D-VAE on one dataset with metrics and downstream scores"
    ):
        figures["efficiency"].make(grouped(made))


def test_both_learners_have_a_panel():
    made = [
        task_run(seed, mig=seed, downstream_logistic__efficiency=seed, downstream_boosting__efficiency=-seed)
        for seed in range(3)
    ]
    *panels, _ = figures["efficiency"].make(grouped(made)).figure.axes
    assert [axes.get_title() for axes in panels] == ["logistic regression", "gradient boosting"]
    assert [axes.texts[0].get_text() for axes in panels] == ["1.00", "−1.00"]


def test_rate_and_distortion_are_kl_and_reconstruction():
    scores = [
        {"kl": 5.0, "elbo": -25.0, "elbo_noiseless": -24.0, "reconstruction": 19.0},
        {"kl": 8.0, "elbo": -20.0, "elbo_noiseless": -20.0, "reconstruction": 12.0},
        {"kl": 7.0, "elbo": -21.0},
    ]
    kinds = ({"model": "vae"}, {"model": "factor-dvae"}, {"model": "dvae", "supervision": "masked"})
    runs = [invented(scores=found, **kind) for found, kind in zip(scores, kinds, strict=True)]
    drawn = figures["rate-distortion"].make(grouped([*runs, invented(seed=1)]))
    (axes,) = drawn.figure.axes
    assert "without noise" not in drawn.caption
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("rate: KL (nats)", "distortion: reconstruction (nats)")
    points = [dot.get_offsets()[0].tolist() for dot in axes.collections]
    assert points == [[5, 20], [8, 12], [7, 14]]
    assert [len(dot.get_facecolor()) for dot in axes.collections] == [1, 1, 0]  # hollow: trained with labels
    for line in axes.lines:  # equal ELBO
        assert np.ptp(line.get_xdata() + line.get_ydata()) == pytest.approx(0, abs=1e-9)
    low, high = axes.get_xlim()
    assert low < 5
    assert high > 8
    markers = {text.get_text(): mark.get_marker() for text, mark in zip(*_legend(axes), strict=True)}
    assert markers == {"VAE": marker("vae"), "D-VAE": marker("vae"), "FactorDVAE": marker("factor-vae")}


def test_runs_of_which_some_have_no_elbo_of_samples_are_compared_without_noise():
    older = invented(model="vae", scores={"kl": 8.0, "elbo_noiseless": -20.0, "reconstruction": 12.0})
    newer = invented(scores={"kl": 5.0, "elbo": -25.0, "elbo_noiseless": -24.0, "reconstruction": 19.0})
    drawn = figures["rate-distortion"].make(grouped([older, newer]))
    assert [dot.get_offsets()[0].tolist() for dot in drawn.figure.axes[0].collections] == [[8, 12], [5, 19]]
    assert "codes without noise" in drawn.caption
    assert "lddr evaluate RUN --metrics elbo" in drawn.caption


def _legend(axes):
    return axes.get_legend().texts, axes.get_legend().legend_handles


def test_every_run_with_labels_is_a_point_in_the_row_of_its_method(labelled_runs):
    (axes,) = figures["semi-supervised"].make(grouped(labelled_runs)).figure.axes
    assert axes.get_title() == "Circles, 100 labels"
    rows = [label.get_text() for label in axes.get_yticklabels()]
    assert rows == ["VAE, BCE", "D-VAE, cross-entropy", "D-VAE, masked"]
    assert [sorted(line.get_xdata()) for line in points(axes)] == [[0.1, 0.2, 0.9], [0.3, 0.4, 0.5], [0.6, 0.7, 0.8]]
    assert all(np.abs(line.get_ydata() - row).max() < 0.5 for row, line in enumerate(points(axes)))
    assert [text.get_text() for text in axes.texts] == 3 * ["n = 3"]


def test_no_panel_cuts_runs_that_score_more_than_those_of_the_first(labelled_runs):
    more = [labelled("vae", "bce", {"mig": 0.99}, 1000), labelled("dvae", "masked", {"mig": 0.1}, 1000)]
    first, second = figures["semi-supervised"].make(grouped([*labelled_runs[3:6], *more])).figure.axes
    assert first.get_xlim() == second.get_xlim()
    assert second.get_xlim()[1] > 0.99


def test_all_runs_of_a_dataset_share_a_panel(logged_run):
    runs = [logged_run, *(invented("vae", dataset, folder=logged_run.folder) for dataset in ("circles", "rooms"))]
    figure = figures["curves"].make(grouped([*runs, invented(folder=Path("without a log"))])).figure
    assert [axes.get_title() for axes in figure.axes] == ["Circles", "rooms"]
    assert [to_hex(line.get_color()) for line in figure.axes[0].lines] == [colour("dvae"), colour("vae")]
    assert figure.axes[0].lines[0].get_ydata().tolist() == [-9, -7, -6]
    assert [text.get_text() for text in figure.axes[0].get_legend().texts] == ["D-VAE", "VAE"]


def test_why_the_elbo_of_a_discrete_model_falls_is_said_where_there_is_one(logged_run, make_run):
    gaussian = make_run("vae", "circles", steps=301)
    gaussian.files.log_file.write_text(logged_run.files.log_file.read_text())
    assert "training ELBO falls" in figures["curves"].make(grouped([logged_run, gaussian])).caption
    assert "training ELBO falls" not in figures["curves"].make(grouped([gaussian])).caption


def test_selectors_have_signs_such_that_a_good_choice_is_positive():
    (found,) = selector_maps(grouped(gapped_runs()), ["dvae"])
    assert found.title == "Circles (4 runs)△"
    assert found.rows == ("small Gap_ST", "large ELBO")
    assert found.columns == ("MIG", "DCI")
    assert found.values == pytest.approx(np.array([[1, -1], [0.8, -0.8]]))


def test_gaussian_models_and_other_discrete_ones_do_not_count_for_the_dvae():
    others = [*gapped_runs(model="factor-dvae"), *gapped_runs(model="vae"), *gapped_runs("rooms", gaps=(1.0, 2.0))]
    assert [found.title for found in selector_maps(grouped([*gapped_runs(), *others]), ["dvae"])] == [
        "Circles (4 runs)△"
    ]


def test_a_panel_per_dataset_with_its_numbers():
    figure = figures["selectors"].make(grouped([*gapped_runs(), *gapped_runs("rooms")])).figure
    *panels, bar = figure.axes
    assert [axes.get_title() for axes in panels] == ["Circles (4 runs)△", "rooms (4 runs)△"]
    for axes in panels:
        assert [label.get_text() for label in axes.get_xticklabels()] == ["MIG", "DCI"]
        assert [text.get_text() for text in axes.texts] == ["1.00", "−1.00", "0.80", "−0.80"]
        assert axes.images[0].get_clim() == (-1, 1)
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["small Gap_ST", "large ELBO"]
    assert bar.get_ylabel() == "Spearman correlation"


@pytest.mark.parametrize("other", [None, "tc-dvae"])
def test_both_models_of_the_papers_selection_are_needed(other):
    runs = [*gapped_runs(), *(gapped_runs(model=other) if other else [])]
    with pytest.raises(UndefinedError, match="no runs of D-VAE and FactorDVAE on one dataset"):
        figures["selectors-combined"].make(grouped(runs))


def test_no_other_discrete_model_is_ranked_with_them():
    runs = [*gapped_runs(), *gapped_runs(model="factor-dvae"), *gapped_runs(model="tc-dvae"), *gapped_runs("rooms")]
    drawn = figures["selectors-combined"].make(grouped(runs))
    assert [axes.get_title() for axes in drawn.figure.axes[:-1]] == ["Circles (8 runs)"]
    assert drawn.caption.endswith("Models: D-VAE and FactorDVAE, ranked together.")


def test_a_map_has_a_value_for_each_pair():
    found = correlations({"a": [1, 2, 3], "b": [3, 2, 1]}, {"c": [1, 2, 3], "d": [1, 3, 2], "e": [0, 0, 0]}, "title")
    assert (found.rows, found.columns) == (("a", "b"), ("c", "d", "e"))
    assert found.values == pytest.approx(np.array([[1, 0.5, np.nan], [-1, -0.5, np.nan]]), nan_ok=True)


def test_undefined_correlations_are_dashes_and_those_around_0_are_grey():
    values, unclear = np.array([[np.nan, 0.25, 0.9]]), np.array([[False, True, False]])
    (axes, _) = heat_maps([HeatMap("one", ("a",), ("b", "c", "d"), values, unclear)]).axes
    assert [text.get_text() for text in axes.texts] == ["–", "0.25", "0.90"]
    assert axes.images[0].get_array().mask.tolist() == [[True, True, False]]
    scores = list(np.arange(20.0))
    found = correlations({"a": scores}, {"same": scores, "other": [7 * score % 20 for score in scores]})
    assert found.unclear.tolist() == [[False, True]]


def test_a_profile_is_widest_where_most_scores_are():
    heights, widths = profile(np.array([0.0, 0.5, 0.5, 0.5, 1.0]))
    assert (heights[0], heights[-1]) == (0, 1)
    assert heights[widths.argmax()] == pytest.approx(0.5)
    assert widths.max() == 1


def test_scores_that_are_all_alike_are_a_line():
    heights, _ = profile(np.array([0.3, 0.3]))
    assert heights == pytest.approx([0.3, 0.3], abs=0.01)
