import numpy as np
import pytest

from lddr.report.exhibits import figures
from lddr.report.style import marker
from tests.report.grouped import grouped, invented


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
