import json

import numpy as np
import pytest

from lddr.metrics.metric import UndefinedError
from lddr.report.card_figures import noise_scale
from lddr.report.exhibits import card_figures
from lddr.report.traversals import LoadedRun
from tests.report.grouped import invented


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
