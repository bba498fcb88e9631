import json

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from lddr.metrics.metric import UndefinedError
from lddr.report.card_figures import log_columns, noise_scale, posterior_panels, settled_range
from lddr.report.exhibits import card_figures
from lddr.report.style import rendered
from lddr.report.traversals import LoadedRun
from lddr.runs.index import read_run
from tests.report.grouped import invented
from tests.run_folders import completed


def test_the_noise_scale_follows_its_cosine(logged_run, make_run):
    assert noise_scale(logged_run, np.array([0, 150, 300])) == pytest.approx([0.5, 1.25, 2.0])
    assert noise_scale(make_run("vae", "circles"), np.array([0, 10])) is None


def test_a_panel_per_term_and_one_for_the_noise(logged_run):
    drawn = card_figures["curves"].make(LoadedRun(logged_run))
    shown = [axes for axes in drawn.figure.axes if axes.axison]
    assert [axes.get_title() for axes in shown] == ["ELBO", "reconstruction", "KL", "total correlation", "noise scale"]
    assert {axes.get_xlabel() for axes in shown} == {"step"}
    lines = [axes.lines[0].get_xydata() for axes in shown]
    assert lines[1].tolist() == [[100, 8], [200, 5], [300, 3]]
    assert lines[3].tolist() == [[200, 0.5], [300, 0.25]]
    assert lines[4][:, 1] == pytest.approx([noise_scale(logged_run, [step])[0] for step in (100, 200, 300)])
    assert "noise scale" in drawn.caption
    assert "training ELBO falls" in drawn.caption


def test_gaussian_latents_have_no_noise_scale(logged_run, make_run):
    run = make_run("vae", "circles")
    run.files.log_file.write_text(logged_run.files.log_file.read_text())
    assert "noise scale" not in card_figures["curves"].make(LoadedRun(run)).caption


def test_a_long_log_is_not_flattened_by_its_beginning(tmp_path):
    records = [{"step": step, "reconstruction": 1e6 if step == 0 else 10 - step / 100} for step in range(100)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    low, high = card_figures["curves"].make(LoadedRun(invented("vae", folder=tmp_path))).figure.axes[0].get_ylim()
    assert low < 10 - 99 / 100
    assert 10 - 10 / 100 < high < 12


def test_a_log_without_a_line_is_a_sentence(tmp_path):
    (tmp_path / "log.jsonl").write_text("")
    with pytest.raises(UndefinedError, match=r"the log of .* is empty"):
        card_figures["curves"].make(LoadedRun(invented(folder=tmp_path)))


@pytest.fixture
def scored(tmp_path):
    """Three latents, two factors of entropy 2 and 1: shares 0.5, 0.25, 0 and 0, 0.1, 0.9; a third factor left out."""
    factors = {"floor_hue": 10, "scale": 8, "angle": 4}
    config = {"settings": {"model": "dvae", "dataset": "rooms"}, "dataset": {"factors": factors}}
    mig = {"score": 0.53, "mutual_information": [[1.0, 0.0], [0.5, 0.1], [0.0, 0.9]], "entropies": [2.0, 1.0]}
    mig["factors_left_out"] = {"angle": "is continuous"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "scores.json").write_text(json.dumps({"training": {}, "metrics": {"mig": mig}}))
    return read_run(completed(tmp_path))


def test_information_is_a_share_of_the_entropy_of_named_factors(scored):
    axes, bar = card_figures["information"].make(LoadedRun(scored)).figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["floor hue", "scale"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["latent 0", "latent 1", "latent 2"]
    assert axes.images[0].get_array().tolist() == [[0.5, 0], [0.25, 0.1], [0, 0.9]]
    assert axes.images[0].get_clim() == (0, 1)
    assert [text.get_text() for text in axes.texts] == ["0.50", "0.00", "0.25", "0.10", "0.00", "0.90"]
    frames = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert [(round(frame.get_x() + 0.48), round(frame.get_y() + 0.46)) for frame in frames] == [(0, 0), (1, 2)]
    assert bar.get_ylabel() == "share of the factor's entropy"


@pytest.mark.parametrize(
    ("metrics", "reason"),
    [
        ({}, "lddr evaluate RUN --metrics mig"),
        ({"mig": {"score": None, "reason": "it has no factors"}}, "it has no factors"),
    ],
)
def test_without_mig_there_is_no_information(scored, metrics, reason):
    (scored.folder / "scores.json").write_text(json.dumps({"training": {}, "metrics": metrics}))
    with pytest.raises(UndefinedError, match=reason):
        card_figures["information"].make(LoadedRun(scored))


def test_a_factor_may_be_called_anything(scored):
    name = r"price in $\frac{ and $"
    scored.files.config_file.write_text(scored.files.config_file.read_text().replace("scale", json.dumps(name)[1:-1]))
    figure = card_figures["information"].make(LoadedRun(scored)).figure
    assert rendered(figure, "svg")
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["floor hue", name]


def test_posteriors_are_sorted_by_code_and_cut_to_active_categories():
    sure = np.eye(3)[[2, 0, 1, 0]]
    masked = np.array([(0.75, 0, 0.25), (0.25, 0, 0.75), (1, 0, 0), (1, 0, 0)])
    active = np.array([[True, True, True], [True, False, True]])
    first, second, bar = posterior_panels(np.stack([sure, masked], axis=1), active).axes
    assert first.images[0].get_array().tolist() == np.eye(3)[[0, 0, 1, 2]].tolist()
    assert second.images[0].get_array().tolist() == [[1, 0], [1, 0], [0.75, 0.25], [0.25, 0.75]]
    assert first.get_title() == "latent 0: 1.00, 3 of 3"
    assert second.get_title() == "latent 1: 0.88, 2 of 2"
    assert first.get_xlabel() == "category"
    assert bar.get_ylabel() == "probability"


def test_a_panel_per_latent_of_a_discrete_model_and_none_of_a_gaussian_one(trained):
    gaussian, discrete = map(read_run, trained)
    assert len(card_figures["posterior"].make(LoadedRun(discrete)).figure.axes) == 2 + 1
    with pytest.raises(UndefinedError, match="Gaussian latents have no categories"):
        card_figures["posterior"].make(LoadedRun(gaussian))


def test_reconstructions_stand_below_their_images(hardly_trained):
    figure = card_figures["reconstructions"].make(hardly_trained["dvae"]).figure
    rows = np.array(figure.axes).reshape(2, 10)
    assert [axes.get_ylabel() for axes in rows[:, 0]] == ["input", "output"]
    images = hardly_trained["dvae"].images(10)
    outputs = hardly_trained["dvae"].model.reconstruct(images)
    for top, bottom, image, output in zip(*rows, images, outputs, strict=True):
        assert np.array_equal(top.images[0].get_array(), np.broadcast_to(image, (32, 32, 3)))
        assert np.allclose(bottom.images[0].get_array(), np.broadcast_to(output, (32, 32, 3)))


def test_traversals_are_rows_of_pictures_with_names(hardly_trained):
    drawn = card_figures["traversals"].make(hardly_trained["dvae"])
    rows = np.array(drawn.figure.axes).reshape(3, 10)
    assert [axes.get_ylabel() for axes in rows[:, 0]] == ["start image", "x", "y"]
    assert [axes.get_title() for axes in rows[0][:2]] == ["input", "reconstruction"]
    assert [axes.get_title() for axes in rows[1][[0, -1]]] == ["0.2", "0.8"]
    assert "its active categories" in drawn.caption
    plain = card_figures["traversals"].make(hardly_trained["vae"]).caption
    assert "The active latents" in plain
    assert "the share of the factor's entropy if it is at least 0.2" in plain
    assert "entropy" not in drawn.caption  # tied latents have their factor's name


def test_terms_are_columns_with_gaps_where_they_were_not_recorded(logged_run):
    columns = log_columns(logged_run)
    assert columns["kl"].tolist() == [1, 2, 3]
    assert columns["total_correlation"] == pytest.approx([np.nan, 0.5, 0.25], nan_ok=True)


def test_a_constant_is_not_looked_at_through_a_lens():
    low, high = settled_range(np.full(50, 5.0) + 1e-7 * np.arange(50))
    assert low < 4.999 < 5.001 < high
