import json

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from lddr.metrics.metric import UndefinedError
from lddr.report.figures import run_figures
from lddr.report.inside import best_factors, posterior_panels
from lddr.runs.index import list_runs, read_run
from lddr.trained import train
from tests.run_folders import completed


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
    axes, bar = run_figures["information"].draw(scored).axes
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
        run_figures["information"].draw(scored)


def test_a_latent_is_known_by_the_factor_it_knows_most_of(scored):
    assert best_factors(scored) == {0: "floor hue", 1: "floor hue", 2: "scale"}
    (scored.folder / "scores.json").write_text(json.dumps({"training": {}}))
    assert best_factors(scored) == {}


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


def test_a_panel_per_latent_of_a_discrete_model_and_none_of_a_gaussian_one(tmp_path):
    for model in ("dvae", "vae"):
        train("circles", model, "quick", out=tmp_path, steps=1, width=1)
    discrete, gaussian = list_runs(tmp_path)
    assert len(run_figures["posterior"].draw(discrete).axes) == 2 + 1
    with pytest.raises(UndefinedError, match="Gaussian latents have no categories"):
        run_figures["posterior"].draw(gaussian)
