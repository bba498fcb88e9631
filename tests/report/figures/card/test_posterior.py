import numpy as np
import pytest

from lddr.metrics.metric import UndefinedError
from lddr.report.card_figures import posterior_panels
from lddr.report.exhibits import card_figures
from lddr.report.traversals import LoadedRun
from lddr.runs.index import list_runs
from lddr.trained import train


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
    assert len(card_figures["posterior"].make(LoadedRun(discrete)).figure.axes) == 2 + 1
    with pytest.raises(UndefinedError, match="Gaussian latents have no categories"):
        card_figures["posterior"].make(LoadedRun(gaussian))
