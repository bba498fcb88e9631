import pytest

from lddr.data.dataset import datasets
from lddr.data.load import load_dataset
from lddr.errors import UserError

DRAWN = [name for name in datasets if not datasets[name].needs_files]


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
