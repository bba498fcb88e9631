"""Which images are read on a model's word: it may come from a stranger and name any place of this machine."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lddr.config import configure
from lddr.errors import UserError
from lddr.explorer import models
from lddr.explorer.models import images_of, opened
from lddr.runs.folder import RunFolder
from lddr.runs.run import run
from tests.explorer.conftest import QUIET, SMALL


@pytest.fixture
def own(tmp_path):
    """A run on a folder of pictures, trained for a step."""
    pictures = tmp_path / "pictures"
    (pictures / "deep").mkdir(parents=True)
    for number in range(20):
        Image.fromarray(np.full((16, 16), 12 * number, np.uint8)).save(pictures / "deep" / f"{number}.png")
    return RunFolder(run(configure("vae", str(pictures), **SMALL | {"steps": 1}), tmp_path / "runs", QUIET))


def rename(folder, dataset, **facts):
    """Let a run say that its images are somewhere else."""
    config = json.loads((folder.path / "config.json").read_text())
    config["settings"]["dataset"] = str(dataset)
    config["dataset"] |= {"path": str(dataset)} | facts
    (folder.path / "config.json").write_text(json.dumps(config))


def test_own_images_are_opened(own):
    model = opened(own.path)
    assert model.problem is None
    assert len(model.dataset) == 20
    assert len(model.kl) == model.trained.num_latents


def test_other_things_beside_the_pictures_do_no_harm(own, tmp_path):
    rename(own, tmp_path)  # which holds the run itself too
    assert len(images_of(own)) == 20


@pytest.mark.parametrize("place", ["/", "//", "/home/..", "~", "~/..", Path.home(), Path.home().parent])
@pytest.mark.parametrize("images", [20, 10**15])
def test_a_model_cannot_make_it_walk_the_disk(own, monkeypatch, place, images):
    rename(own, place, images=images)
    for name in ("walk", "scandir", "listdir"):
        monkeypatch.setattr(os, name, lambda *_: pytest.fail("it looks into folders"))
    model = opened(own.path)
    assert "is no place for the images of a run" in model.problem
    assert model.dataset is None


@pytest.mark.parametrize("name", ["circles", "pictures"])
def test_the_path_that_a_run_kept_is_looked_at_before_it_is_read(own, monkeypatch, name):
    rename(own, name, path="/")
    for look in ("walk", "scandir", "listdir"):
        monkeypatch.setattr(os, look, lambda *_: pytest.fail("it looks into folders"))
    assert "/ is no place for the images of a run" in opened(own.path).problem


@pytest.mark.parametrize("images", [19, -1, None, "20", 20.0, True])
def test_a_folder_with_more_pictures_than_the_run_saw_is_not_read(own, monkeypatch, images):
    rename(own, own.config.dataset, images=images)
    monkeypatch.setattr(Image, "open", lambda *_: pytest.fail("it reads pictures"))
    with pytest.raises(UserError, match="holds more than the"):
        images_of(own)


def test_the_walk_has_an_end(own, monkeypatch):
    monkeypatch.setattr(models, "MOST_FILES", 5)
    with pytest.raises(UserError, match="holds more than the 20 images"):
        images_of(own)


def test_what_would_never_end_is_not_opened(own, tmp_path):
    os.mkfifo(tmp_path / "endless.npz")
    rename(own, tmp_path / "endless.npz")
    with pytest.raises(UserError, match="is no place"):
        images_of(own)


def test_other_pictures_under_the_same_name_are_not_shown(own):
    place = Path(own.config.dataset)
    shutil.rmtree(place / "deep")
    for number in range(20):
        Image.fromarray(np.full((16, 16), 255 - number, np.uint8)).save(place / f"{number}.png")
    assert "no longer those" in opened(own.path).problem


@pytest.mark.parametrize("place", ["~nobody/at/all", "a\0b/c", "x/" * 5000, "/no/such/folder"])
def test_a_place_that_cannot_be_is_a_problem_and_the_model_opens(own, place):
    rename(own, place)
    model = opened(own.path)
    assert model.problem
    assert model.decoded([0.0] * model.trained.num_latents).shape == (16, 16, 1)


def test_a_model_is_opened_on_the_device_that_was_chosen(own):
    assert opened(own.path, "cpu").trained.device.type == "cpu"
    with pytest.raises(NotImplementedError, match="meta"):  # where nothing can be read
        opened(own.path, "meta")
