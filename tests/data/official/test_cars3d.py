import os
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from lddr.data.factors import Factor, FactorGrid
from lddr.data.official import cars3d
from lddr.data.official.cars3d import Cars3D
from lddr.errors import UserError

CARS = 183


def views(car: int) -> np.ndarray:
    """Flat pictures whose three channels are elevation, azimuth and car; white at the upper right corner."""
    azimuth, elevation = np.arange(24)[:, np.newaxis], np.arange(4)[np.newaxis, :]
    array = np.empty((128, 128, 3, 24, 4), np.uint8, order="F")  # as MATLAB has it
    array[:, :, 0], array[:, :, 1], array[:, :, 2] = elevation, azimuth, car
    array[:32, 96:] = 255
    return array


def names(count: int = CARS) -> list[str]:
    """Names whose order is neither that of their numbers nor that in which they are written."""
    return sorted(f"car_{number}_mesh.mat" for number in range(count))


@pytest.mark.parametrize("count", [3, pytest.param(CARS, marks=pytest.mark.long)])
def test_the_image_of_a_factor_tuple_is_the_one_stored_for_it(
    data: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cars3d, "CARS", count)
    monkeypatch.setattr(
        Cars3D, "space", FactorGrid((Factor("elevation", 4), Factor("azimuth", 24), Factor("object", count)))
    )
    (data / "cars").mkdir(parents=True)
    for car in np.random.default_rng(0).permutation(count):
        savemat(data / "cars" / names(count)[car], {"im": views(car)}, do_compression=bool(car % 8 == 0))
    (data / "cars" / "list.txt").write_text("not a car")
    cars = Cars3D()
    numbers = np.arange(len(cars))
    images = cars.images(numbers)
    assert images.shape == (4 * 24 * count, 64, 64, 3)
    factors = cars.space.factors_of(numbers)
    np.testing.assert_array_equal(images[:, 40, 20], factors)
    np.testing.assert_array_equal(images[:, 60, 60], factors)
    np.testing.assert_array_equal(cars.space.indices_of(images[:, 40, 20]), numbers)
    assert (images[:, 4, 60] == 255).all(), "upper right"
    np.testing.assert_array_equal(images[:, 60, 4], factors)  # lower left


def write_cars(folder: Path, count: int, content: dict[str, np.ndarray]) -> None:
    folder.mkdir(parents=True)
    for name in names()[:count]:
        (folder / name).touch()
    savemat(folder / names()[0], content)


def test_a_folder_without_cars_is_no_dataset(data: Path) -> None:
    (data / "cars").mkdir(parents=True)
    (data / "cars" / "list.txt").touch()
    assert Cars3D.found() == []
    with pytest.raises(UserError, match=r"^Cars3D not found under"):
        Cars3D()


@pytest.mark.parametrize("count", [1, 182])
def test_any_other_number_of_cars_is_refused(data: Path, count: int) -> None:
    write_cars(data / "cars", count, {})
    with pytest.raises(UserError, match=rf"cars: expected 183 car files \(\*\.mat\), found {count}"):
        Cars3D()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({}, "expected an array 'im', found none"),
        ({"im": np.zeros((128, 128, 3, 4, 24), np.uint8)}, "128x128x3x24x4 uint8, found 128x128x3x4x24 uint8"),
        ({"im": np.zeros((128, 128, 3, 24, 4))}, "128x128x3x24x4 uint8, found 128x128x3x24x4 float64"),
    ],
)
def test_another_array_is_refused(data: Path, content: dict[str, np.ndarray], sentence: str) -> None:
    write_cars(data / "cars", CARS, content)
    with pytest.raises(UserError, match=rf"car_0_mesh\.mat: .*{sentence}"):
        Cars3D()
    assert [path.suffix for path in (data.parent / "cache/lddr/arrays").iterdir()] == [".lock"]


@pytest.mark.parametrize("left", [0, 100, 1000, 20_000])
def test_a_broken_file_is_refused(data: Path, left: int) -> None:
    write_cars(data / "cars", CARS, {"im": np.random.default_rng(0).integers(9, size=views(0).shape, dtype=np.uint8)})
    os.truncate(data / "cars" / names()[0], left)
    with pytest.raises(UserError, match=r"car_0_mesh\.mat: expected (a whole MATLAB file|an array 'im'), found"):
        Cars3D()
