import json

import pytest
from matplotlib.patches import Rectangle

from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import card_figures
from lddr.report.style import rendered
from lddr.report.traversals import LoadedRun
from lddr.runs.index import read_run
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
