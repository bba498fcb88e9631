import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex

from lddr.metrics.metric import UndefinedError
from lddr.report.curves import logged, noise_scale
from lddr.report.figures import figures, run_figures
from lddr.report.style import COLOURS, MARKERS
from lddr.runs.index import Run

NOISE = {"noise_start": 0.5, "noise_end": 2.0, "steps": 301}


def run(folder, model="dvae", dataset="circles", scores=None, **settings):
    return Run(folder, "finished", {"model": model, "dataset": dataset} | settings, scores or {})


@pytest.fixture
def trained(tmp_path):
    records = [
        {"step": 100, "loss": 9.0, "elbo": -9.0, "reconstruction": 8.0, "kl": 1.0},
        {"step": 200, "loss": 7.0, "elbo": -7.0, "reconstruction": 5.0, "kl": 2.0, "total_correlation": 0.5},
        {"step": 300, "loss": 6.0, "elbo": -6.0, "reconstruction": 3.0, "kl": 3.0, "total_correlation": 0.25},
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return run(tmp_path, **NOISE)


def test_terms_are_columns_with_gaps_where_they_were_not_recorded(trained):
    columns = logged(trained)
    assert columns["kl"].tolist() == [1, 2, 3]
    assert columns["total_correlation"] == pytest.approx([np.nan, 0.5, 0.25], nan_ok=True)


def test_the_noise_scale_follows_its_cosine(trained):
    assert noise_scale(trained, np.array([0, 150, 300])) == pytest.approx([0.5, 1.25, 2.0])
    assert noise_scale(run(Path(), "vae", steps=300), np.array([0])) is None


def test_a_panel_per_term_and_one_for_the_noise(trained):
    shown = [axes for axes in run_figures["curves"].draw(trained).axes if axes.axison]
    assert [axes.get_title() for axes in shown] == ["ELBO", "reconstruction", "KL", "total correlation", "noise scale"]
    assert {axes.get_xlabel() for axes in shown} == {"step"}
    lines = [axes.lines[0].get_xydata() for axes in shown]
    assert lines[1].tolist() == [[100, 8], [200, 5], [300, 3]]
    assert lines[3].tolist() == [[200, 0.5], [300, 0.25]]
    assert lines[4][:, 1] == pytest.approx([noise_scale(trained, [step])[0] for step in (100, 200, 300)])
    assert "noise scale" in run_figures["curves"].caption(trained)
    assert "noise scale" not in run_figures["curves"].caption(run(Path(), "vae"))


def test_a_long_log_is_not_flattened_by_its_beginning(tmp_path):
    records = [{"step": step, "reconstruction": 1e6 if step == 0 else 10 - step / 100} for step in range(100)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    low, high = run_figures["curves"].draw(run(tmp_path, "vae")).axes[0].get_ylim()
    assert low < 10 - 99 / 100
    assert 10 - 10 / 100 < high < 12


def test_a_log_without_a_line_is_a_sentence(tmp_path):
    (tmp_path / "log.jsonl").write_text("")
    with pytest.raises(UndefinedError, match=r"the log of .* is empty"):
        run_figures["curves"].draw(run(tmp_path))


def test_all_runs_of_a_dataset_share_a_panel(trained):
    runs = [trained, run(trained.folder, "vae", steps=301), run(trained.folder, "vae", "rooms")]
    figure = figures["curves"].draw([*runs, run(Path("without a log"))])
    assert [axes.get_title() for axes in figure.axes] == ["Circles", "rooms"]
    assert [to_hex(line.get_color()) for line in figure.axes[0].lines] == [COLOURS["dvae"], COLOURS["vae"]]
    assert figure.axes[0].lines[0].get_ydata().tolist() == [-9, -7, -6]
    assert [text.get_text() for text in figure.axes[0].get_legend().texts] == ["D-VAE", "VAE"]


def test_rate_and_distortion_are_kl_and_reconstruction():
    scores = [
        {"kl": 5.0, "reconstruction": 20.0},
        {"kl": 8.0, "reconstruction": 12.0},
        {"kl": 7.0, "reconstruction": 14.0},
    ]
    kinds = ({"model": "vae"}, {"model": "factor-dvae"}, {"model": "dvae", "supervision": "masked"})
    runs = [run(Path(), scores=found, **kind) for found, kind in zip(scores, kinds, strict=True)]
    (axes,) = figures["rate-distortion"].draw([*runs, run(Path("unfinished"))]).axes
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
    assert markers == {"VAE": MARKERS["elbo"], "D-VAE": MARKERS["elbo"], "FactorDVAE": MARKERS["factor"]}


def _legend(axes):
    return axes.get_legend().texts, axes.get_legend().legend_handles
