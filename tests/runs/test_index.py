import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lddr.config import configure
from lddr.errors import UserError
from lddr.runs import index
from lddr.runs.index import flat_scores, gather, list_runs, read_run
from tests.run_folders import completed

METRICS = {
    "mig": {"score": 0.41, "settings": {"num_bins": 20}, "mutual_information": [[1.0, 2.0]]},
    "dci": {"score": 0.5, "completeness": 0.25, "accuracy": {"100": 0.7}, "fitted": True},
    "sap": {"score": None, "reason": "one factor only"},
}


TRAINING = {"elbo": -9.5, "elbo_noiseless": -8.5, "kl": 2.0}


def made(root: Path, scores: dict | None = None, **settings) -> Path:
    """A run folder as `lddr train` and `lddr evaluate` leave it, without the weights."""
    config = configure(**{"model": "dvae", "dataset": "circles", "preset": "quick"} | settings)
    folder = root / config.run_name
    folder.mkdir(parents=True)
    content = {"settings": config.as_dict(), "versions": {}, "dataset": {"checksum": "c0ffee"}}
    (folder / "config.json").write_text(json.dumps(content))
    (folder / "checkpoint").mkdir()
    if scores is not None:
        (folder / "scores.json").write_text(json.dumps({"training": TRAINING, "metrics": scores}))
        completed(folder)
    return folder


@pytest.fixture
def opened(monkeypatch):
    """The folders that were read, beyond the index."""
    folders: list[Path] = []
    monkeypatch.setattr(index, "read_run", lambda folder: folders.append(folder) or read_run(folder))
    return folders


def test_values_are_flat_and_have_the_names_of_the_command_line(tmp_path):
    folder = made(tmp_path, METRICS, model="factor-dvae", gamma=20, seed=3, supervision="masked", labels=50)
    (run,) = list_runs(tmp_path)
    expected = {
        "dataset": "circles",
        "model": "factor-dvae",
        "seed": 3,
        "steps": 2000,
        "gamma": 20.0,
        "width": 4,
        "kernels": "4,4,4,4",
        "latent": "categorical",
        "supervision": "masked",
        "labels": 50,
        "state": "finished",
        "elbo": -9.5,
        "elbo_noiseless": -8.5,
        "kl": 2.0,
        "mig": 0.41,
        "dci": 0.5,
        "dci.completeness": 0.25,
        "dci.accuracy.100": 0.7,
        "name": folder.name,
        "folder": str(folder),
        "run": folder.name[-8:],
        "checksum": "c0ffee",
        **dict.fromkeys(["sap", "mig.settings.num_bins", "mig.mutual_information", "dci.fitted", "beta"]),
    }
    assert {name: run.value(name) for name in expected} == expected
    assert run.number("seed") == 3.0
    assert run.number("model") is None


def test_supervision_is_none_without_labels(tmp_path):
    made(tmp_path, model="vae")
    (run,) = list_runs(tmp_path)
    assert "supervision" in run.settings
    assert run.value("supervision") is None
    assert run.value("latent") == "gaussian"


def test_a_setting_that_lddr_did_not_have_yet_is_at_its_default(tmp_path):
    """Else runs of two versions would seem to differ: seeds would not be compared, reports would part them."""
    new, old = made(tmp_path, METRICS), made(tmp_path / "old", METRICS, seed=1)
    content = json.loads((old / "config.json").read_text())
    del content["settings"]["training"]["min_contrast"]
    (old / "config.json").write_text(json.dumps(content))
    one, other = read_run(new), read_run(old)
    assert other.settings["min_contrast"] == 0.0
    assert one.settings | {"seed": 1} == other.settings
    assert "labels" not in other.settings
    content["settings"]["model"] = "of my own"
    (old / "config.json").write_text(json.dumps(content))
    assert "min_contrast" not in read_run(old).settings


def test_labels_weigh_in_older_runs_what_they_did_then(tmp_path):
    folder = made(tmp_path, model="vae", supervision="bce", labels=10)
    assert read_run(folder).value("risk_of") == "batch"
    content = json.loads((folder / "config.json").read_text())
    del content["settings"]["supervision"]["risk_of"]
    (folder / "config.json").write_text(json.dumps(content))
    run = read_run(folder)
    assert run.value("risk_of") == "image"
    assert run.files.config.supervision.weight(64) == 1.0


def test_runs_are_found_at_any_depth_but_not_inside_runs(tmp_path):
    inside = made(tmp_path, {}, seed=0)
    made(inside / "tensorboard", {}, seed=9)
    places = {inside, made(tmp_path / "study", {}, seed=1), made(tmp_path / "a" / "b", {}, seed=2)}
    made(tmp_path / ".hidden", {}, seed=4)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "file").write_text("")
    runs = list_runs(tmp_path)
    assert {run.folder for run in runs} == places
    assert [str(run.folder) for run in runs] == sorted(map(str, places))


def test_a_link_to_a_run_is_a_run_and_a_root_may_be_one(tmp_path):
    folder = made(tmp_path / "elsewhere", {})
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "best").symlink_to(folder)
    assert [run.name for run in list_runs(tmp_path / "runs")] == ["best"]
    assert [run.folder for run in list_runs(folder)] == [folder]
    assert not (folder / ".index.json").exists()


def test_several_roots_give_each_run_once(tmp_path):
    made(tmp_path / "one", {}, seed=0)
    made(tmp_path / "two", {}, seed=1)
    assert [run.value("seed") for run in gather([tmp_path, tmp_path / "two", tmp_path / "one"])] == [0, 1]


@pytest.mark.parametrize(
    "text", ["{half", "", "[]", "{}", '{"settings": 3}', '{"training": []}', "\xff", "[" * 100_000]
)
@pytest.mark.parametrize("file", ["config.json", "scores.json"])
def test_a_damaged_file_is_a_state_with_a_reason(file, text, tmp_path):
    folder = made(tmp_path, METRICS)
    (folder / file).write_text(text, encoding="latin-1")
    for _ in range(2):  # with and without an index
        (run,) = list_runs(tmp_path)
        assert run.state == "broken"
        assert run.reason is not None
        assert run.reason
        assert "\n" not in run.reason
    assert run.value("model") == (None if file == "config.json" else "dvae")


def test_metrics_of_a_wrong_shape_are_a_state_too(tmp_path):
    folder = completed(made(tmp_path))
    for metrics in ([1], {"mig": 0.4}, {"mig": {"score": 10**400}}):
        (folder / "scores.json").write_text(json.dumps({"training": {}, "metrics": metrics}))
        assert list_runs(tmp_path)[0].state == "broken"


def test_states(tmp_path):
    made(tmp_path, METRICS, seed=0)
    made(tmp_path, None, seed=1)
    assert [run.state for run in list_runs(tmp_path)] == ["finished", "training"]


def test_a_missing_root_is_a_sentence_and_an_empty_one_is_empty(tmp_path):
    assert list_runs(tmp_path) == []
    with pytest.raises(UserError, match="there is no folder"):
        list_runs(tmp_path / "nowhere")


def test_the_index_saves_reading_and_changes_nothing(tmp_path, opened):
    for seed in range(3):
        made(tmp_path / "study", METRICS if seed else None, seed=seed)
    first = list_runs(tmp_path)
    assert len(opened) == 3
    assert list_runs(tmp_path) == first
    assert len(opened) == 3
    assert "mutual_information" not in (tmp_path / ".index.json").read_text()


def test_what_changes_is_read_again(tmp_path, opened):
    folders = [made(tmp_path, METRICS, seed=seed) for seed in range(3)]
    list_runs(tmp_path)
    opened.clear()
    draft = folders[1] / "draft"  # as long as before, and as old
    draft.write_text((folders[1] / "scores.json").read_text().replace("0.41", "0.99"))
    before = (folders[1] / "scores.json").stat()
    os.utime(draft, ns=(before.st_atime_ns, before.st_mtime_ns))
    draft.replace(folders[1] / "scores.json")
    assert [run.value("mig") for run in list_runs(tmp_path)] == [0.41, 0.99, 0.41]
    assert opened == [folders[1]]


def test_an_index_that_calls_the_noiseless_elbo_elbo_is_not_used(tmp_path):
    folder = made(tmp_path, {})
    (folder / "scores.json").write_text('{"training": {"elbo": -3.0}}')
    list_runs(tmp_path)
    known = json.loads((tmp_path / ".index.json").read_text())
    (entry,) = known["runs"].values()
    entry["run"]["scores"] = {"elbo": -3.0}
    (tmp_path / ".index.json").write_text(json.dumps(known | {"format": 3}))
    assert [run.scores for run in list_runs(tmp_path)] == [{"elbo_noiseless": -3.0}]


def test_finishing_and_vanishing_are_seen(tmp_path):
    training, gone = made(tmp_path, None, seed=0), made(tmp_path, {}, seed=1)
    list_runs(tmp_path)
    (training / "scores.json").write_text('{"training": {"elbo": 1, "elbo_noiseless": 2}}')
    completed(training)
    gone.rename(tmp_path.parent / f"{tmp_path.name}-gone")
    assert [(run.state, run.value("elbo")) for run in list_runs(tmp_path)] == [("finished", 1)]
    assert len(json.loads((tmp_path / ".index.json").read_text())["runs"]) == 1


def damaged(text: str, kind: str) -> str:
    content = json.loads(text)
    if kind == "format":
        return json.dumps(content | {"format": -1})
    for entry in content["runs"].values():
        entry["run"] = {"none": None, "flat": {"settings": 1, "scores": {}}, "empty": {}}.get(kind)
    return json.dumps(content)


@pytest.mark.parametrize("kind", ["cut", "list", "format", "none", "flat", "empty"])
def test_a_damaged_index_is_rebuilt(kind, tmp_path):
    made(tmp_path, METRICS)
    runs = list_runs(tmp_path)
    good = (tmp_path / ".index.json").read_text()
    bad = {"cut": good[:20], "list": "[1]"}.get(kind) or damaged(good, kind)
    (tmp_path / ".index.json").write_text(bad)
    assert list_runs(tmp_path) == runs
    assert json.loads((tmp_path / ".index.json").read_text()) == json.loads(good)


def edited(root, change):
    """The index with other values of its only run, and the stamp it has."""
    content = (root / ".index.json").read_text()
    entry = next(iter(json.loads(content)["runs"].values()))["run"]
    was = json.dumps(entry, separators=(",", ":"))
    change(entry)
    assert was in content
    (root / ".index.json").write_text(content.replace(was, json.dumps(entry, separators=(",", ":"))))


def test_a_value_that_somebody_wrote_into_the_index_is_not_shown(tmp_path):
    made(tmp_path, METRICS)
    runs = list_runs(tmp_path)
    edited(tmp_path, lambda run: run["scores"].update(elbo=12345))
    assert list_runs(tmp_path) == runs
    assert "12345" not in (tmp_path / ".index.json").read_text()


def test_an_index_that_is_no_file_is_not_waited_for(tmp_path):
    made(tmp_path, METRICS)
    os.mkfifo(tmp_path / ".index.json")
    assert [run.value("mig") for run in list_runs(tmp_path)] == [0.41]
    assert (tmp_path / ".index.json").is_file()


def test_where_no_index_can_be_written_there_is_none(tmp_path):
    made(tmp_path, METRICS)
    (tmp_path / ".index.json").mkdir()  # in its way, even for root
    assert [run.value("mig") for run in list_runs(tmp_path)] == [0.41]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == [".index.json"]


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=20, deadline=None)
@given(st.dictionaries(st.text(max_size=4), st.dictionaries(st.sampled_from(["score", "a", "b"]), json_values)))
def test_scores_are_finite_numbers_whatever_a_metric_says(metrics):
    for value in flat_scores({"training": {}, "metrics": metrics}).values():
        assert isinstance(value, int | float)
        assert not isinstance(value, bool)
        assert value - value == 0
