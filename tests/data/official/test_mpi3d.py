import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lddr.data.dataset import datasets
from lddr.data.factors import Factor, FactorGrid
from lddr.errors import UserError

NEWER, OLDER = (6, 6, 2, 3, 3, 40, 40), (4, 4, 2, 3, 3, 40, 40)


def picture(number: int, sizes: tuple[int, ...]) -> np.ndarray:
    """The factor values in the first pixels, and a mark in the last."""
    image = np.zeros(64 * 64 * 3, np.uint8)
    image[: len(sizes)] = np.unravel_index(number, sizes)
    image[-1] = 77
    return image.reshape(64, 64, 3)


@pytest.fixture
def write(data: Path, stored_npz: Callable) -> Callable[[str, tuple[int, ...], np.ndarray], Path]:
    def write_images(name: str, sizes: tuple[int, ...], numbers: np.ndarray) -> Path:
        path = data / datasets[name].files[0][0]
        shape = (int(np.prod(sizes)), 64, 64, 3)
        stored_npz(path, "images", shape, {int(number): picture(number, sizes) for number in numbers})
        return path

    return write_images


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("mpi3d_toy", OLDER),
        ("mpi3d_toy", NEWER),
        ("mpi3d_realistic", NEWER),
        ("mpi3d_real", NEWER),
        ("mpi3d_real_complex", OLDER),
    ],
)
def test_the_image_of_a_factor_tuple_is_the_one_stored_for_it(
    data: Path, write: Callable, chosen: Callable, name: str, sizes: tuple[int, ...]
) -> None:
    numbers = chosen(int(np.prod(sizes)), 50)
    path = write(name, sizes, numbers)
    dataset = datasets[name]()
    assert dataset.space.sizes == sizes
    images = dataset.images(numbers)
    assert images.shape == (len(numbers), *dataset.image_shape)
    factors = images.reshape(len(numbers), -1)[:, :7]
    np.testing.assert_array_equal(factors, dataset.space.factors_of(numbers))
    np.testing.assert_array_equal(dataset.space.indices_of(factors), numbers)
    assert (images[:, -1, -1, -1] == 77).all()
    assert not dataset.images(np.setdiff1d(numbers + 1, numbers)[:10]).any()
    assert dataset.rows.path == path, "an array that is not compressed is used where it lies"
    assert not (data.parent / "cache").exists()


def test_the_length_of_one_file_says_nothing_about_the_next(write: Callable) -> None:
    write("mpi3d_toy", OLDER, np.arange(3))
    older = datasets["mpi3d_toy"]()
    write("mpi3d_real", NEWER, np.arange(3))
    assert [len(older), len(datasets["mpi3d_real"]())] == [460_800, 1_036_800]
    assert datasets["mpi3d_toy"].space.sizes == NEWER


@pytest.mark.parametrize(
    ("shape", "found"),
    [
        ((1_036_799, 64, 64, 3), "1036799x64x64x3 uint8"),
        ((768_000, 64, 64, 3), "768000x64x64x3 uint8"),
        ((460_800, 32, 32, 3), "460800x32x32x3 uint8"),
    ],
)
def test_any_other_length_is_refused(data: Path, stored_npz: Callable, shape: tuple[int, ...], found: str) -> None:
    stored_npz(data / "mpi3d_toy/mpi3d_toy.npz", "images", shape, {})
    with pytest.raises(
        UserError, match=rf"toy\.npz: expected the array 'images' to be .*460800x64x64x3.*, found {found}"
    ):
        datasets["mpi3d_toy"]()


@pytest.mark.parametrize(
    ("images", "found"),
    [
        (np.zeros((460_800, 1, 1, 1), np.float32), "460800x1x1x1 float32"),
        (np.zeros(0, np.uint8), "0 uint8"),
        (np.uint8(7), "a single uint8"),
    ],
)
def test_another_array_is_refused(data: Path, images: np.ndarray, found: str) -> None:
    (data / "mpi3d_toy").mkdir(parents=True)
    np.savez(data / "mpi3d_toy/mpi3d_toy.npz", images=images)
    with pytest.raises(UserError, match=rf"toy\.npz: expected the array 'images' .*460800x64x64x3.*, found {found}"):
        datasets["mpi3d_toy"]()


def test_a_file_of_simple_shapes_is_not_one_of_complex_shapes(write: Callable) -> None:
    path = write("mpi3d_real_complex", NEWER, np.arange(3))
    with pytest.raises(
        UserError, match=rf"{path}: expected the array 'images' to be 460800x64x64x3 uint8, found 1036800"
    ):
        datasets["mpi3d_real_complex"]()


def test_a_compressed_file_is_converted_once(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = FactorGrid((Factor("colour", 4), Factor("shape", 5)))
    monkeypatch.setattr(datasets["mpi3d_toy"], "spaces", (small,))
    (data / "mpi3d_toy").mkdir(parents=True)
    images = np.random.default_rng(0).integers(256, size=(20, 64, 64, 3), dtype=np.uint8)
    np.savez_compressed(data / "mpi3d_toy/mpi3d_toy.npz", images=images)
    dataset = datasets["mpi3d_toy"]()
    np.testing.assert_array_equal(dataset.images([19, 3]), images[[19, 3]])
    assert dataset.rows.path.parent == data.parent / "cache/lddr/arrays"
    assert datasets["mpi3d_toy"]().rows.path == dataset.rows.path


PROCESS = """
import numpy as np, psutil
from lddr.data import array_files
from lddr.data.official.mpi3d import MPI3DReal

array_files.MOST_RESIDENT = 32 << 20
dataset, generator = MPI3DReal(), np.random.default_rng(0)
resident = [psutil.Process().memory_info().rss]
for start in range(0, 20_000, 500):  # in order first, which fills the system's cache quickly
    dataset.images(np.arange(start, start + 500))
    resident.append(psutil.Process().memory_info().rss)
for _ in range(50):
    dataset.images(generator.integers(20_000, size=100))
    resident.append(psutil.Process().memory_info().rss)
print(max(resident) - resident[0])
"""


def test_a_process_that_reads_on_releases_what_it_has_read(write: Callable) -> None:
    """It reads 246 MB of images: all of it would be resident if no pages were released at 32 MB."""
    write("mpi3d_real", NEWER, np.arange(3))
    finished = subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, text=True, check=True)
    assert int(finished.stdout) < 120e6
