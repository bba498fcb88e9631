import itertools
import json

import pytest
import torch

from lddr import bench
from lddr.cli.sweeps import print_estimate
from lddr.config import configure
from lddr.data.dataset import datasets
from lddr.data.load import why_missing
from lddr.data.official.dsprites import drawn_sprites
from lddr.metrics.metric import choose_metrics
from lddr.sweeps import progress as estimate_module
from lddr.sweeps.progress import estimate, seconds_per_step, shape_of, stage_of, stand_in
from lddr.sweeps.study import Study
from tests.run_folders import completed

TINY = {"resolution": 16, "width": 4, "steps": 1000}


def tiny(model="dvae", dataset="circles", **named):
    return configure(model, dataset, **TINY | named)


@pytest.fixture
def step_of_a_second(monkeypatch):
    timed = []

    def one_second(config, steps):
        timed.append(config)
        return 1.0

    monkeypatch.setattr(estimate_module, "seconds_per_step", one_second)
    return timed


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    for name in ("LDDR_DATA", "DISENTANGLEMENT_LIB_DATA", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))


def scored(name):
    return {"score": 0.5, "settings": choose_metrics([name])[name].settings | {"draw_seed": 0, "bins": None}}


def finished(out, config, *metrics):
    folder = out / config.run_name
    folder.mkdir(parents=True)
    scores = {"training": {"elbo": -1.0}, "metrics": {name: scored(name) for name in metrics}}
    (folder / "scores.json").write_text(json.dumps(scores))
    completed(folder)


def begun(out, config, *steps):
    folder = out / config.run_name / "checkpoint"
    folder.mkdir(parents=True)
    for step in steps:
        (folder / f"{step:09d}.safetensors").write_bytes(b"")


def test_the_folders_show_what_is_done(tmp_path, step_of_a_second):
    runs = [tiny(seed=seed) for seed in range(6)]
    finished(tmp_path, runs[0], "mig", "gap", "sap")
    finished(tmp_path, runs[1], "mig")
    begun(tmp_path, runs[2], 300, 400)
    (tmp_path / runs[3].run_name / "checkpoint").mkdir(parents=True)  # killed before its first checkpoint
    found = estimate(Study("mine", runs, ("mig", "gap")), tmp_path, quiet=True)
    assert found.stages == {"finished": 1, "trained": 1, "begun": 1, "new": 3}
    assert found.runs == 6
    (share,) = found.shares
    assert (share.runs, share.steps) == (4, 600 + 3 * 1000)
    assert found.core_hours == pytest.approx(1.0)
    assert found.missing == {}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"metrics": null}', '{"training": {}}'])
def test_scores_without_metrics_are_of_a_trained_run(tmp_path, text):
    finished(tmp_path, tiny())
    (tmp_path / tiny().run_name / "scores.json").write_text(text)
    assert stage_of(tiny(), tmp_path, choose_metrics(["mig"])) == ("trained", 0)


def test_scores_with_other_settings_are_not_those_of_the_study(tmp_path):
    finished(tmp_path, tiny(), "mig", "dci")
    fast = Study("mine", [], ("dci", "mig"), scoring={"dci": {"estimator": "fast"}})
    assert stage_of(tiny(), tmp_path, choose_metrics(["dci", "mig"])) == ("finished", 0)
    assert stage_of(tiny(), tmp_path, fast.wanted) == ("trained", 0)


def test_nothing_is_timed_when_nothing_is_left(tmp_path, step_of_a_second):
    finished(tmp_path, tiny(), "mig")
    found = estimate(Study("mine", [tiny()], ("mig",)), tmp_path, quiet=True)
    assert step_of_a_second == []
    assert found.core_hours == 0


SAME = [
    (tiny(), tiny(seed=7, steps=50, learning_rate=0.1)),
    (tiny("factor-vae", gamma=10), tiny("factor-vae", gamma=50, discriminator_learning_rate=0.1)),
    (tiny(supervision="masked", labels=100), tiny(supervision="masked", labels=1000, omega=8)),
    (configure("dvae", "dsprites"), configure("dvae", "smallnorb")),
    (configure("vae", "cars3d"), configure("vae", "rooms")),
]
OTHER = [
    (tiny(), tiny("vae")),
    (tiny(), tiny("beta-dvae")),
    (tiny(), tiny(width=8)),
    (tiny(), tiny(resolution=32)),
    (tiny(), tiny(batch_size=32)),
    (tiny(), tiny(precision="bf16")),
    (tiny(), tiny(num_categories=8)),
    (tiny(), tiny(supervision="masked")),
    (tiny("factor-vae"), tiny("factor-vae", discriminator_width=256)),
    (configure("dvae", "dsprites"), configure("dvae", "shapes3d")),
    (tiny(), tiny(dataset="dsprites")),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_runs_that_cost_the_same_are_timed_once(one, other, tmp_path, step_of_a_second):
    assert shape_of(one) == shape_of(other)
    found = estimate(Study("mine", [one, other]), tmp_path, quiet=True)
    assert len(step_of_a_second) == 1
    assert found.shares[0].runs == 2


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_runs_that_cost_something_else_are_timed_apart(one, other):
    assert shape_of(one) != shape_of(other)


@pytest.mark.parametrize("name", list(datasets))
def test_a_stand_in_has_images_of_the_same_shape_and_needs_no_files(name):
    assert not datasets[stand_in(name)].needs_files
    assert datasets[stand_in(name)].image_shape == datasets[name].image_shape


def test_datasets_that_are_not_here_are_named_and_estimated_all_the_same(tmp_path, no_data, step_of_a_second, capsys):
    runs = [configure("dvae", name, steps=3600) for name in ("cars3d", "smallnorb", "dsprites")]
    found = estimate(Study("mine", runs), tmp_path, quiet=True)
    assert found.core_hours == pytest.approx(3)
    assert set(found.missing) == {"cars3d", "smallnorb"}
    print_estimate(found)
    shown = capsys.readouterr().out
    assert "get it with: lddr data download smallnorb (263 MB)\n" in shown
    assert "mine: 3 runs; 0 finished, 0 trained and to be scored, 0 half-finished, 3 not started\n" in shown
    assert "training left: 3.0 core-hours" in shown


def test_images_of_ones_own_that_are_not_here_are_unknown(tmp_path, capsys):
    path = str(tmp_path / "none.npz")
    found = estimate(Study("mine", [configure("dvae", path), configure("dvae", path, seed=1)]), tmp_path, quiet=True)
    assert (found.core_hours, found.unknown_runs) == (0, 2)
    assert list(found.missing) == [path]
    print_estimate(found)
    assert "not counted: 2 runs on images that are not here\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["circles", "dsprites", "rooms"])
def test_drawn_datasets_are_always_here(name, no_data):
    assert why_missing(name) is None


@pytest.mark.parametrize(
    "config",
    [tiny("vae"), tiny("factor-dvae", discriminator_width=8, supervision="masked", labels=20, num_latents=2)],
)
def test_steps_are_timed_on_one_thread(config, monkeypatch):
    threads, now = [], [0.0]
    seconds = iter([9.0, 8.0, 3.0, 1.0, 2.0])  # the first two are not counted
    real = bench.next_step

    def watched(config):
        step = real(config)

        def one_step():
            threads.append(torch.get_num_threads())
            now[0] += next(seconds)
            return step()

        return one_step

    monkeypatch.setattr(bench, "next_step", watched)
    monkeypatch.setattr(estimate_module, "process_time", lambda: now[0])
    monkeypatch.setattr(estimate_module, "TIMED_SECONDS", 0.0)
    torch.set_num_threads(2)
    try:
        found = seconds_per_step(config, 3)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert threads == [1] * (2 + 3)
    assert found == 2.0


def test_the_clock_does_not_run_while_a_dataset_draws_its_tables(monkeypatch):
    """The sprites of dSprites take many times as long as the step that first asks for them."""
    drawn_sprites.cache_clear()
    missing = []
    real, clock = bench.next_step, itertools.count()

    def counted(config):
        step = real(config)
        missing.append(int((~drawn_sprites()._is_drawn).sum()))
        return step

    monkeypatch.setattr(bench, "next_step", counted)
    monkeypatch.setattr(estimate_module, "process_time", lambda: float(next(clock)))
    assert seconds_per_step(tiny("vae", dataset="dsprites", resolution=32), 1) == 1.0
    assert missing[0] < len(drawn_sprites()._is_drawn) / 20  # orientation 39 is never drawn: it is 0
