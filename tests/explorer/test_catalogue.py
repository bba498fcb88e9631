import shutil

import pytest

from lddr.explorer.catalogue import Catalogue, GoneError
from tests.run_folders import completed


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
    assert not catalogue.about(token)["opens"]
    (runs / "deep/run-0/model.safetensors").touch()
    assert catalogue.about(token)["opens"]
