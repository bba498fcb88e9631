"""A damaged run does not hide the others: it is listed as broken, and every request is answered."""

import json
import os
import shutil

import pytest
import requests

from lddr.trained import Trained
from tests.explorer.conftest import serving

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
    assert rows["healthy"]["state"] in ("finished", "collapsed")  # after 40 steps
    assert rows["healthy"]["mig"] is not None
    return rows


@pytest.fixture
def runs(trained_runs, tmp_path):
    """A healthy run; `add` copies it to damage the copy."""
    shutil.copytree(trained_runs["dvae"], tmp_path / "runs" / "healthy")
    return tmp_path / "runs"


def add(runs, name="ill"):
    return shutil.copytree(runs / "healthy", runs / name)


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


def test_settings_of_any_value(runs):
    for name in ("model", "dataset", "resolution", "objective", "latent", "training", "steps", "new"):
        for kind, value in VALUES.items():

            def poison(content, name=name, value=value):
                settings = content["settings"]
                (settings["training"] if name == "steps" else settings)[name] = value

            changed(add(runs, f"{name} {kind}") / "config.json", poison)
    with serving(runs) as address:
        rows = listed(address)
        assert len(rows) == 1 + 8 * len(VALUES)
        for name, row in rows.items():
            if name != "healthy":
                assert (row["state"], bool(row["reason"])) == ("broken", True)
                for what in ("", "/scores", "/log"):
                    ask(address, f"/api/runs/{row['token']}{what}")
            if name.endswith(("a list", "NaN", "huge")):
                ask(address, f"/api/runs/{row['token']}/model")
        ask(address, f"/api/runs/{rows['dataset a list']['token']}/reconstructions")


def test_scores_of_any_value(runs):
    places = ("training", "metrics", "score", "detail", "reason", "matrix", "entropies", "metric")
    for place in places:
        for kind, value in (VALUES | {"nothing": None, "a word": "x"}).items():

            def poison(content, place=place, value=value):
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

            changed(add(runs, f"{place} {kind}") / "scores.json", poison)
    with serving(runs) as address:
        rows = listed(address)
        assert len(rows) == 1 + len(places) * (len(VALUES) + 2)
        for name, row in rows.items():
            for what in ("", "/scores", "/log"):
                ask(address, f"/api/runs/{row['token']}{what}")
            if name.startswith(("matrix", "metric ")):  # which name the latents
                ask(address, f"/api/runs/{row['token']}/model")


LINES = ["{", "[]", "1", '{"step": "x"}', '{"loss": 1}', '{"step": NaN, "loss": 2}', '{"step": 3, "loss": [NaN]}', "\0"]
LINES += ['{"step": 1' + "0" * 400 + ', "loss": 1' + "0" * 400 + "}"]
LINES += [
    '{"step": 1e999, "loss": 1}',
    '{"step": 4, "loss": 1' + "0" * 5000 + "}",
    '{"step": 5, "\\ud800": 1}',
    "[" * 9999,
]


def test_logs_of_any_line(runs):
    for number, line in enumerate(LINES):
        for end in ("", '{"step": 9, "loss": 1}\n'):
            (add(runs, f"{number} {bool(end)}") / "log.jsonl").write_text(f"{line}\n{end}")
    with serving(runs) as address:
        rows = listed(address)
        assert len(rows) == 1 + 2 * len(LINES)
        for row in rows.values():
            ask(address, f"/api/runs/{row['token']}/log")


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


def test_files_of_any_kind(runs):
    kinds = (as_folder, as_pipe, as_broken_link, as_endless_link, as_device)
    for name in ("config.json", "scores.json", "log.jsonl", "model.safetensors"):
        for become in kinds:
            folder = add(runs, f"{name} {become.__name__}")
            (folder / name).unlink()
            become(folder / name)
    with serving(runs) as address:
        rows = listed(address)
        hidden = {f"{name} {become.__name__}" for name in ("config.json",) for become in kinds} - set(rows)
        assert hidden <= {"config.json as_broken_link", "config.json as_endless_link"}  # without settings it is no run
        for title, row in rows.items():
            if title != "healthy":
                is_unfinished = title.startswith("scores.json") and title.endswith("link")
                assert row["state"] == ("training" if is_unfinished else "broken"), title
            assert str(runs) not in str(row["reason"])
            for what in ("", "/scores", "/log", "/model"):
                assert str(runs) not in json.dumps(ask(address, f"/api/runs/{row['token']}{what}"))


def test_a_name_that_is_no_text(runs, shared_site):
    shutil.move(add(runs), os.fsencode(runs) + b"/ill-\xff\xfe")
    site = shared_site
    with serving(runs) as address:
        site.leave(address)
        row = listed(address)["ill-\udcff\udcfe"]
        assert ask(address, f"/api/runs/{row['token']}")["state"] == "finished"
        site.open()
        assert site.page.locator("table.runs tbody tr").count() == 2
        site.open(f"model/{row['token']}")
        assert site.page.locator("h1").inner_text().startswith("ill-")
        site.check()
        site.leave(None)


def test_a_diverged_model_says_so(runs):
    trained = Trained.load(add(runs))
    for weights in trained.vae.parameters():
        weights.data.fill_(NAN)
    trained.save(runs / "ill")
    with serving(runs) as address:
        token = listed(address)["ill"]["token"]
        ask(address, f"/api/runs/{token}/model")
        answer = requests.post(f"{address}/api/runs/{token}/encode", json={"index": 0}, timeout=60)
        assert (answer.status_code, "diverged" in answer.text) == (400, True)
