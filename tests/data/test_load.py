import numpy as np
import pytest
import torch

from lddr.data.dataset import datasets
from lddr.data.load import as_dataset, load_dataset
from lddr.errors import UserError

FIXED_SIZE = ("infinite_dsprites", "xysquares_1")  # these have no 32x32
DRAWN = [name for name in datasets if not datasets[name].needs_files and name not in FIXED_SIZE]


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_datasets_load_by_name_at_two_resolutions(name):
    assert load_dataset(name).image_shape[:2] == (64, 64)
    assert load_dataset(name, resolution=32).image_shape[:2] == (32, 32)


def test_official_datasets_have_one_resolution():
    with pytest.raises(UserError, match="shapes3d comes at 64x64 only"):
        load_dataset("shapes3d", resolution=32)


def test_an_unknown_name_is_no_path():
    with pytest.raises(UserError, match="unknown dataset 'circels'; did you mean 'circles'"):
        load_dataset("circels")


def test_a_name_wins_over_a_folder_of_the_same_name(tmp_path, monkeypatch):
    (tmp_path / "circles").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_dataset("circles").name == "circles"
    with pytest.raises(UserError, match="no images in"):
        load_dataset("./circles")


@pytest.mark.parametrize("name", ["sprites", "color_sprites", "noisy_sprites"])
def test_old_names_are_answered_with_the_new_ones(name):
    with pytest.raises(
        UserError, match=f"^the dataset '{name}' is no more; use '{name.replace('sprites', 'dsprites')}' in"
    ):
        load_dataset(name)


@pytest.mark.parametrize("name", ["x" * 5000, "a/" + "x" * 5000, "~nobody-of-this-name/pictures", "a\0b/c"])
def test_names_that_no_file_can_have_are_refused(name):
    with pytest.raises(UserError, match=r"unknown dataset|does not exist"):
        load_dataset(name)


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_datasets_are_square(name):
    assert load_dataset(name, resolution="32x32").image_shape[:2] == (32, 32)
    with pytest.raises(UserError, match=f"{name} has square images, not 32x64; give the resolution as one number"):
        load_dataset(name, resolution="32x64")


def test_everything_becomes_a_dataset(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    images = np.random.default_rng(0).integers(256, size=(20, 16, 24, 3), dtype=np.uint8)
    np.save(tmp_path / "images.npy", images)
    np.savez(tmp_path / "images.npz", images=images)
    circles = load_dataset("circles")
    assert as_dataset(circles) is circles
    assert as_dataset("circles", resolution=32).image_shape == (32, 32, 1)
    given = images, tmp_path / "images.npy", str(tmp_path / "images.npz"), torch.from_numpy(images)
    for each in (*given, list(images), np.load(tmp_path / "images.npy", mmap_mode="r"), iter(images)):
        dataset = as_dataset(each, resolution="8x12")
        assert dataset.image_shape == (8, 12, 3)
        assert dataset.content() == as_dataset(images, resolution="8x12").content()


@pytest.mark.parametrize("given", ["circles", load_dataset("circles")])
def test_datasets_have_factors_of_their_own(given):
    with pytest.raises(UserError, match="factors are labels of an array of images"):
        as_dataset(given, factors=[1, 2])


@pytest.mark.parametrize("given", [3, object(), None, {"images": 3}])
def test_what_is_no_images_is_a_sentence(given):
    with pytest.raises(UserError, match=r"expected images of shape|cannot be read as an array"):
        as_dataset(given)


@pytest.mark.parametrize("size", [(1000, 400), (6, 9)])
def test_images_of_a_size_they_may_not_have_are_scaled_and_that_is_said(size):
    dataset = as_dataset(np.zeros((2, *size, 3), np.uint8))
    assert dataset.image_shape == {1000: (512, 205, 3), 6: (8, 12, 3)}[size[0]]
    assert "since images have sides of 8 to 512 pixels" in dataset.reading
