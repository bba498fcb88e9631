"""Which images are read for a model: a run may come from another machine and name any place of this one."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lddr.config import configure
from lddr.data.samples import write_samples
from lddr.errors import UserError
from lddr.explorer.open_model import MOST_MODELS, images_of, open_model
from lddr.runs.folder import RunFolder
from lddr.runs.run import run
from tests.explorer.conftest import QUIET, SMALL


@pytest.fixture(scope="module")
def trained_on_pictures(tmp_path_factory):
    """A run on a folder of pictures, trained for a step."""
    place = tmp_path_factory.mktemp("own")
    (place / "pictures" / "deep").mkdir(parents=True)
    for number in range(20):
        Image.fromarray(np.full((16, 16), 12 * number, np.uint8)).save(place / "pictures" / "deep" / f"{number}.png")
    return run(configure("vae", str(place / "pictures"), **SMALL | {"steps": 1}), place / "runs", QUIET)


@pytest.fixture
def own(trained_on_pictures, tmp_path):
    """A copy of it, with its pictures."""
    shutil.copytree(trained_on_pictures.parents[1], tmp_path, dirs_exist_ok=True)
    folder = RunFolder(tmp_path / "runs" / trained_on_pictures.name)
    rename(folder, tmp_path / "pictures")
    return folder


def rename(folder, dataset, **facts):
    """Let a run say that its images are somewhere else."""
    config = json.loads((folder.path / "config.json").read_text())
    config["settings"]["dataset"] = str(dataset)
    config["dataset"] |= {"path": str(dataset)} | facts
    (folder.path / "config.json").write_text(json.dumps(config))


def test_own_images_are_opened_and_stay_in_memory(own):
    model = open_model(own.path)
    assert model.problem is None
    assert len(model.dataset) == 20
    assert len(model.kl) == model.trained.num_latents
    assert open_model(own.path) is model
    os.utime(own.model_file, (1, 1))
    assert open_model(own.path) is not model
    assert MOST_MODELS == 8


def test_other_files_among_the_pictures_do_no_harm(own, tmp_path):
    rename(own, tmp_path)  # which also holds the run itself
    assert len(images_of(own)) == 20


@pytest.mark.parametrize("images", [19, -1, None, "20", True])
def test_a_folder_with_more_pictures_than_the_run_saw_is_not_read(own, monkeypatch, images):
    rename(own, own.config.dataset, images=images)
    monkeypatch.setattr(Image, "open", lambda *_: pytest.fail("it reads pictures"))
    with pytest.raises(UserError, match="holds more than the"):
        images_of(own)


def test_the_whole_disk_is_not_searched_for_pictures(own, monkeypatch):
    rename(own, "circles", path="/")
    seen, walk = [], os.walk

    def counted(top):
        for found in walk(top):
            seen.extend(found[1] + found[2])
            yield found

    monkeypatch.setattr(os, "walk", counted)
    monkeypatch.setattr(Image, "open", lambda *_: pytest.fail("it reads pictures"))
    model = open_model(own.path)
    assert "/ holds more than the 20 images" in model.problem
    assert model.dataset is None
    assert len(seen) < 50_000


def test_a_pipe_is_not_read(own, tmp_path):
    os.mkfifo(tmp_path / "endless.npz")
    rename(own, tmp_path / "endless.npz")
    with pytest.raises(UserError):
        images_of(own)


def test_other_pictures_under_the_same_name_are_not_shown(own):
    place = Path(own.config.dataset)
    shutil.rmtree(place / "deep")
    for number in range(20):
        Image.fromarray(np.full((16, 16), 255 - number, np.uint8)).save(place / f"{number}.png")
    assert "no longer those" in open_model(own.path).problem


@pytest.mark.parametrize("place", ["~no_such_user/at/all", "a\0b/c", "x/" * 5000, "/no/such/folder"])
def test_without_its_images_a_model_still_opens(own, place):
    rename(own, place)
    model = open_model(own.path)
    assert model.problem
    assert model.decode([0.0] * model.trained.num_latents).shape == (16, 16, 1)


def test_without_its_images_a_model_shows_its_samples(own):
    images = np.stack([images_of(own).images([number])[0] for number in range(5)])
    write_samples(own.samples_file, images)
    rename(own, "/no/such/folder")
    model = open_model(own.path)
    assert model.problem is None
    about = model.description()["dataset"]
    assert (about["size"], about["factors"], about["are_samples"]) == (5, [], True)
    assert model.encode({"index": 4})["index"] == 4
    assert model.reconstructions().shape == (32, 160, 1)


def test_its_images_come_before_samples(own):
    write_samples(own.samples_file, images_of(own).images([0]))
    model = open_model(own.path)
    assert len(model.dataset) == 20
    assert not model.description()["dataset"]["are_samples"]


def test_damaged_samples_leave_the_model_open(own):
    own.samples_file.write_bytes(b"no picture")
    rename(own, "/no/such/folder")
    model = open_model(own.path)
    assert model.dataset is None
    assert "delete it to use the model without sample images" in model.problem


def test_a_model_is_opened_on_the_device_that_was_chosen(own):
    assert open_model(own.path, "cpu").trained.device.type == "cpu"
    with pytest.raises(UserError, match="the device 'nowhere' cannot be used here"):
        open_model(own.path, "nowhere")
