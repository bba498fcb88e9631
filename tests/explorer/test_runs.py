import json
import shutil

import pytest

from lddr.explorer.runs import MOST_POINTS, Catalogue, GoneError, all_scores, curves_of
from lddr.runs.index import Run, read_run
from tests.run_folders import completed
from tests.runs.test_information import MIG, write


@pytest.fixture
def runs(tmp_path, many_values):
    for seed in range(3):
        folder = tmp_path / "deep" / f"run-{seed}"
        folder.mkdir(parents=True)
        for name, content in zip(("config.json", "scores.json"), many_values(seed), strict=True):
            (folder / name).write_text(content)
        completed(folder)
    return tmp_path


def test_tokens_say_nothing_and_stay(runs):
    first, second = Catalogue(runs).listed(), Catalogue(runs).listed()
    assert list(first) == list(second)
    assert all(len(token) == 12 and set(token) <= set("0123456789abcdef") for token in first)
    assert [run.name for run in first.values()] == ["run-0", "run-1", "run-2"]


def test_a_run_is_found_by_its_token_alone(runs):
    catalogue = Catalogue(runs)
    token = next(iter(catalogue.listed()))
    assert catalogue.run(token).name == "run-0"
    for stranger in ("", ".", "deep/run-0", "../" * 5, token[:-1], token.upper() + "x", str(runs / "deep/run-0")):
        with pytest.raises(GoneError):
            catalogue.run(stranger)


def test_a_run_that_came_later_is_found_too(runs):
    catalogue = Catalogue(runs)
    catalogue.listed()
    shutil.copytree(runs / "deep/run-0", runs / "new")
    token = next(token for token, run in Catalogue(runs).listed().items() if run.name == "new")
    assert catalogue.run(token).name == "new"
    shutil.rmtree(runs / "new")
    with pytest.raises(GoneError, match="no longer there"):
        catalogue.run(token)


def test_a_folder_that_is_a_run_itself_is_listed(runs):
    catalogue = Catalogue(runs / "deep/run-1")
    assert [run.name for run in catalogue.listed().values()] == ["run-1"]


def test_scores_stand_before_the_settings_that_differ(runs):
    table = Catalogue(runs).table()
    names = [column["name"] for column in table["columns"]]
    shown = [column["name"] for column in table["columns"] if column["shown"]]
    assert shown[:6] == ["run", "dataset", "model", "seed", "mig", "gap"]
    assert names[: len(shown)] == shown
    assert "folder" not in names
    assert set(table["colours"]) == {"vae", "dvae"}
    assert next(column for column in table["columns"] if column["name"] == "mig")["score"]


def test_a_run_says_whether_its_model_can_be_opened(runs):
    catalogue = Catalogue(runs)
    token = next(iter(catalogue.listed()))
    catalogue.run(token).files.model_file.unlink()
    assert not catalogue.about(catalogue.run(token))["opens"]
    (runs / "deep/run-0/model.safetensors").touch()
    assert catalogue.about(catalogue.run(token))["opens"]


def test_scores_come_with_reasons_and_details(tmp_path):
    folder = completed(write(tmp_path, MIG))
    scores = json.loads((folder / "scores.json").read_text())
    scores["metrics"] |= {"gap": {"score": None, "reason": "no categories"}, "dci": {"score": 0.5, "completeness": 0.6}}
    (folder / "scores.json").write_text(json.dumps(scores))
    found = all_scores(read_run(folder))
    rows = {row["name"]: row for row in found["metrics"]}
    assert rows["mig"]["score"] == 0.4
    assert rows["gap"]["reason"] == "no categories"
    assert rows["dci"]["details"] == {"completeness": 0.6}
    assert found["training"] == {"elbo_noiseless": -3.0}
    assert found["information"]["factors"] == ["shape", "x"]


@pytest.mark.parametrize("lines", [0, 1, MOST_POINTS, 3 * MOST_POINTS + 7])
def test_long_curves_are_thinned_and_keep_their_end(tmp_path, lines):
    records = [{"step": 100 * (number + 1), "loss": float(number)} for number in range(lines)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    found = curves_of(Run(tmp_path, "training", {"steps": 500_000}, {}))
    assert found["step"] == 100 * lines
    if lines:
        assert found["terms"]["loss"][0] == (100, 0.0)
        assert found["terms"]["loss"][-1] == (100 * lines, lines - 1.0)
        assert len(found["terms"]["loss"]) <= MOST_POINTS + 1


def test_a_term_that_is_no_number_is_left_out(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"step": 1, "loss": NaN, "kl": "x"}\n{"step": 2, "loss": 1}\n')
    assert curves_of(Run(tmp_path, "training", {}, {}))["terms"] == {"loss": [(2, 1)], "kl": []}
