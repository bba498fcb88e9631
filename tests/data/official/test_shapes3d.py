from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

from lddr.data.factors import Factor, FactorGrid
from lddr.data.official.shapes3d import HDF5, NPZ, Shapes3D
from lddr.errors import UserError

SHAPE = (480_000, 64, 64, 3)
LABELS = (480_000, 6)


def picture(number: int) -> np.ndarray:
    """The factor values in the first pixels, and a mark in the last."""
    image = np.zeros(64 * 64 * 3, np.uint8)
    image[:6] = Shapes3D.space.factors_of(number)
    image[-1] = 77
    return image.reshape(64, 64, 3)


def write_hdf5(path: Path, shape: tuple = SHAPE, dtype: str = "u1", labels: tuple | None = LABELS) -> h5py.File:
    path.parent.mkdir(parents=True)
    file = h5py.File(path, "w")
    file.create_dataset("images", shape, dtype, chunks=(16, *shape[1:]), compression="gzip", compression_opts=1)
    if labels:
        file.create_dataset("labels", labels, "f8")
    return file


def check_lookup(dataset: Shapes3D, numbers: np.ndarray) -> None:
    images = dataset.images(numbers)
    assert images.shape == (len(numbers), *dataset.image_shape)
    factors = images.reshape(len(numbers), -1)[:, :6]
    np.testing.assert_array_equal(factors, dataset.space.factors_of(numbers))
    np.testing.assert_array_equal(dataset.space.indices_of(factors), numbers)
    assert (images[:, -1, -1, -1] == 77).all()
    assert not dataset.images(np.setdiff1d(numbers + 1, numbers)[:10]).any()


@pytest.mark.parametrize("hues", [2, pytest.param(10, marks=pytest.mark.long)])
def test_hdf5_the_image_of_a_factor_tuple_is_the_one_stored_for_it(
    data: Path, chosen: Callable, monkeypatch: pytest.MonkeyPatch, hues: int
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=2**40))  # it will be sparse
    coloured = (Factor(name, hues) for name in Shapes3D.space.names[:3])
    space = FactorGrid((*coloured, *Shapes3D.space.factors[3:]))
    monkeypatch.setattr(Shapes3D, "space", space)
    numbers = chosen(space.size, 50)
    with write_hdf5(data / HDF5, (space.size, *SHAPE[1:]), labels=(space.size, 6)) as file:
        for number in numbers:
            file["images"][number] = picture(number)
    dataset = Shapes3D()
    check_lookup(dataset, numbers)
    assert dataset.rows.path.stat().st_blocks * 512 < 3e9
    assert Shapes3D().rows.path == dataset.rows.path


def test_npz_the_image_of_a_factor_tuple_is_the_one_stored_for_it(
    data: Path, chosen: Callable, stored_npz: Callable
) -> None:
    numbers = chosen(SHAPE[0], 50)
    stored_npz(data / NPZ, "images", SHAPE, {int(number): picture(number) for number in numbers})
    dataset = Shapes3D()
    check_lookup(dataset, numbers)
    assert dataset.rows.path == data / NPZ


@pytest.mark.parametrize(
    ("shape", "dtype", "found"),
    [
        ((48_000, 64, 64, 3), "u1", "48000x64x64x3 uint8"),
        ((480_000, 64, 64, 1), "u1", "480000x64x64x1 uint8"),
        (SHAPE, "f4", "480000x64x64x3 float32"),
    ],
)
def test_another_array_is_refused(data: Path, shape: tuple, dtype: str, found: str) -> None:
    write_hdf5(data / HDF5, shape, dtype).close()
    with pytest.raises(UserError, match=rf"3dshapes.h5: expected .*480000x64x64x3 uint8, found {found}"):
        Shapes3D()
    assert not (data.parent / "cache").exists()


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (None, "expected an array 'labels', found images"),
        ((480_000, 5), "expected the array 'labels' to be 480000x6 float64, found 480000x5 float64"),
    ],
)
def test_other_labels_are_refused(data: Path, labels: tuple | None, sentence: str) -> None:
    write_hdf5(data / HDF5, labels=labels).close()
    with pytest.raises(UserError, match=f"3dshapes.h5: {sentence}"):
        Shapes3D()


def test_labels() -> None:
    assert [Shapes3D.space.factors[4].label(value) for value in range(4)] == ["cube", "cylinder", "sphere", "capsule"]
    assert [Shapes3D.space.factors[5].label(value) for value in (0, 7, 14)] == ["-30", "0", "30"]
