"""One run that holds nonsense must not hide the others: it is listed, as broken, and every question is answered."""

import json
import os
import shutil

import pytest
import requests

from lddr.trained import Trained
from tests.explorer.conftest import serving, visiting

NAN, HUGE = float("nan"), 10**400


def no_constants(name):
    raise AssertionError(f"{name} is no JSON: no browser reads it")


def ask(address, path):
    """The answer, read as strictly as a browser does."""
    answer = requests.get(f"{address}{path}", timeout=60)
    assert answer.status_code < 500, answer.text
    if answer.headers["content-type"] == "image/png":
        return {}
    answer.content.decode("ascii")
    return json.loads(answer.content, parse_constant=no_constants)


def listed(address):
    """The runs by name, each with its values by column."""
    table = ask(address, "/api/runs")
    names = [column["name"] for column in table["columns"]]
    rows = {row["name"]: dict(zip(names, row["values"], strict=True)) | row for row in table["runs"]}
    assert rows["healthy"]["state"] == "finished"
    assert rows["healthy"]["mig"] is not None
    return rows


@pytest.fixture
def runs(trained_runs, tmp_path):
    """A healthy run and one to be poisoned."""
    for name in ("healthy", "ill"):
        shutil.copytree(trained_runs["dvae"], tmp_path / "runs" / name)
    return tmp_path / "runs"


def changed(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


VALUES = {
    "NaN": NAN,
    "deep": json.loads("[" * 200 + "]" * 200),
    "infinite": float("inf"),
    "huge": HUGE,
    "a list": [1, [2]],
    "an object": {"a": {"b": 1}},
    "a lone surrogate": "\ud800",
}


@pytest.mark.parametrize("name", ["model", "dataset", "resolution", "objective", "latent", "training", "steps", "new"])
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_a_setting_that_is_none(runs, name, value):
    def poison(content):
        settings = content["settings"]
        (settings["training"] if name == "steps" else settings)[name] = value

    changed(runs / "ill/config.json", poison)
    with serving(runs) as address:
        row = listed(address)["ill"]
        assert (row["state"], bool(row["reason"])) == ("broken", True)
        for what in ("", "/scores", "/log", "/model", "/reconstructions"):
            ask(address, f"/api/runs/{row['token']}{what}")


@pytest.mark.parametrize("place", ["training", "metrics", "score", "detail", "reason", "matrix", "entropies", "metric"])
@pytest.mark.parametrize("value", [*VALUES.values(), None, "x"], ids=[*VALUES.keys(), "nothing", "a word"])
def test_a_score_that_is_none(runs, place, value):
    def poison(content):
        mig = content["metrics"]["mig"]
        if place in ("training", "metrics"):
            content[place] = value
        elif place == "metric":
            content["metrics"]["mig"] = value
        elif place == "reason":
            mig.update(score=None, reason=value)
        elif place == "matrix":
            mig["mutual_information"] = [[value, 1.0], [1.0, value]]
        else:
            mig[{"detail": "new"}.get(place, place)] = value

    changed(runs / "ill/scores.json", poison)
    with serving(runs) as address:
        row = listed(address)["ill"]
        for what in ("", "/scores", "/log", "/model"):
            ask(address, f"/api/runs/{row['token']}{what}")


LINES = ["{", "[]", "1", '{"step": "x"}', '{"loss": 1}', '{"step": NaN, "loss": 2}', '{"step": 3, "loss": [NaN]}', "\0"]
LINES += ['{"step": 1' + "0" * 400 + ', "loss": 1' + "0" * 400 + "}"]
LINES += [
    '{"step": 1e999, "loss": 1}',
    '{"step": 4, "loss": 1' + "0" * 5000 + "}",
    '{"step": 5, "\\ud800": 1}',
    "[" * 9999,
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:30])
@pytest.mark.parametrize("is_last", [True, False])
def test_a_log_that_is_none(runs, line, is_last):
    (runs / "ill/log.jsonl").write_text(f"{line}\n" + ("" if is_last else '{"step": 9, "loss": 1}\n'))
    with serving(runs) as address:
        ask(address, f"/api/runs/{listed(address)['ill']['token']}/log")


def as_folder(path):
    path.mkdir()


def as_pipe(path):
    os.mkfifo(path)


def as_broken_link(path):
    path.symlink_to("nowhere")


def as_endless_link(path):
    path.symlink_to(path.name)


def as_device(path):
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("name", ["config.json", "scores.json", "log.jsonl", "model.safetensors"])
@pytest.mark.parametrize("become", [as_folder, as_pipe, as_broken_link, as_endless_link, as_device])
def test_a_file_that_is_none(runs, name, become):
    (runs / "ill" / name).unlink()
    become(runs / "ill" / name)
    with serving(runs) as address:
        row = listed(address).get("ill")
        if row is None:  # a link to nowhere is no file, and without settings it is no run
            assert name == "config.json"
            return
        assert row["state"] == ("training" if name == "scores.json" and "link" in become.__name__ else "broken")
        assert str(runs) not in str(row["reason"])
        for what in ("", "/scores", "/log", "/model"):
            assert str(runs) not in json.dumps(ask(address, f"/api/runs/{row['token']}{what}"))


def test_a_name_that_is_no_text(runs, chromium):
    shutil.move(runs / "ill", os.fsencode(runs) + b"/ill-\xff\xfe")
    with serving(runs) as address, visiting(chromium, address) as site:
        row = listed(address)["ill-\udcff\udcfe"]
        assert ask(address, f"/api/runs/{row['token']}")["state"] == "finished"
        site.open()
        assert site.page.locator("table.runs tbody tr").count() == 2
        site.open(f"model/{row['token']}")
        assert site.page.locator("h1").inner_text().startswith("ill-")


def test_a_model_that_gives_no_numbers_says_so(runs):
    trained = Trained.load(runs / "ill")
    for weights in trained.vae.parameters():
        weights.data.fill_(NAN)
    trained.save(runs / "ill")
    with serving(runs) as address:
        token = listed(address)["ill"]["token"]
        ask(address, f"/api/runs/{token}/model")
        answer = requests.post(f"{address}/api/runs/{token}/encode", json={"index": 0}, timeout=60)
        assert (answer.status_code, "diverged" in answer.text) == (400, True)
