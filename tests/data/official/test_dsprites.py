import subprocess
import sys
from collections.abc import Callable
from math import tau
from pathlib import Path

import h5py
import numpy as np
import pytest

from lddr.data.factors import Factor, FactorGrid
from lddr.data.official.dsprites import PATH, ColorDSprites, DSprites, NoisyDSprites, halved
from lddr.errors import UserError

COUNT = 737_280
SHAPE = (COUNT, 64, 64)
SMALL = FactorGrid((*DSprites.space.factors[:3], Factor("x", 4), Factor("y", 6)))  # 17,280 images
BLOCKS = (5760, 16, 16)  # h5py, left to itself, chooses (23040, 2, 4)


def picture(number: int) -> np.ndarray:
    """The image's number as black and white pixels, and one white pixel in the last corner."""
    pixels = np.zeros(4096, np.uint8)
    pixels[:20] = number >> np.arange(20) & 1
    pixels[-1] = 1
    return pixels.reshape(64, 64)


def numbers_on(images: np.ndarray) -> np.ndarray:
    """The numbers that pictures (0/255, one channel) show; fails on anything that is not such a picture."""
    pixels = images.reshape(len(images), 4096).astype(int)
    assert set(np.unique(pixels)) == {0, 255}
    assert not pixels[:, 20:-1].any()
    assert pixels[:, -1].all()
    return (pixels[:, :20] // 255) @ (1 << np.arange(20))


def write_hdf5(path: Path, numbers: np.ndarray, count: int) -> None:
    path.parent.mkdir(parents=True)
    with h5py.File(path, "w") as file:
        images = file.create_dataset(
            "imgs", (count, 64, 64), np.uint8, chunks=BLOCKS, compression="gzip", compression_opts=1
        )
        for start in np.unique(numbers // BLOCKS[0]) * BLOCKS[0]:
            block = np.zeros((BLOCKS[0], 64, 64), np.uint8)
            for number in numbers[(numbers >= start) & (numbers < start + BLOCKS[0])]:
                block[number - start] = picture(number)
            images[start : start + BLOCKS[0]] = block


@pytest.fixture(scope="module")
def numbers(chosen: Callable) -> np.ndarray:
    return chosen(SMALL.size, 300)


@pytest.fixture(scope="module")
def written(lasting_data: Path, deflated_npz: Callable, numbers: np.ndarray) -> Path:
    bomb = np.array([Bomb()], dtype=object)
    with (lasting_data.parent / "metadata.npy").open("wb") as file:
        np.save(file, bomb)
    others = {"metadata.npy": (lasting_data.parent / "metadata.npy").read_bytes()}
    images = {int(number): picture(number) for number in numbers}
    deflated_npz(lasting_data / f"{PATH}.npz", "imgs", (SMALL.size, 64, 64), images, others)
    return lasting_data


@pytest.fixture
def folder(written: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of the official format with fewer positions."""
    monkeypatch.setattr(DSprites, "space", SMALL)
    return written


class Bomb:
    def __reduce__(self) -> tuple:
        return (pytest.fail, ("a pickle was loaded",))


PROCESS = """
import threading, time
import numpy as np, psutil
from lddr.data.official.dsprites import DSprites

def watch():
    while True:
        resident.append(psutil.Process().memory_info().rss)
        time.sleep(0.002)

resident = []
threading.Thread(target=watch, daemon=True).start()
dataset = DSprites()
for start in range(0, len(dataset), 4096):
    dataset.images(np.arange(start, start + 4096))
print(len(resident), max(resident))
"""


@pytest.mark.long
def test_converting_and_reading_all_images_takes_less_than_500_megabytes(data: Path, deflated_npz: Callable) -> None:
    numbers = np.arange(0, COUNT, 2459)
    deflated_npz(data / f"{PATH}.npz", "imgs", SHAPE, {int(number): picture(number) for number in numbers}, {})
    finished = subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, text=True, check=True)
    samples, peak = map(int, finished.stdout.split())
    assert samples > 100
    assert peak <= 500e6
    np.testing.assert_array_equal(numbers_on(DSprites().images(numbers)), numbers)


def test_the_image_of_a_factor_tuple_is_the_one_stored_for_it(folder: Path, numbers: np.ndarray) -> None:
    dataset = DSprites()
    shape, scale, orientation, x, y = dataset.space.factors_of(numbers).T
    np.testing.assert_array_equal((((shape * 6 + scale) * 40 + orientation) * 4 + x) * 6 + y, numbers)
    indices = dataset.space.indices_of(np.stack([shape, scale, orientation, x, y], axis=-1))
    images = dataset.images(indices)
    assert images.shape == (len(numbers), *dataset.image_shape)
    np.testing.assert_array_equal(numbers_on(images), numbers)


def test_what_was_not_stored_is_black(folder: Path, numbers: np.ndarray) -> None:
    others = np.setdiff1d(np.arange(0, SMALL.size, 29), numbers)
    assert not DSprites().images(others).any()


@pytest.mark.parametrize("count", [11520, pytest.param(COUNT, marks=pytest.mark.long)])
def test_the_hdf5_file_gives_the_same_images(data: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DSprites, "space", FactorGrid((Factor("number", count),)))
    numbers = np.append(np.arange(0, 11520, 997), np.arange(count - 5760, count, 997))
    write_hdf5(data / f"{PATH}.hdf5", numbers, count)
    np.testing.assert_array_equal(numbers_on(DSprites().images(numbers)), numbers)
    assert not DSprites().images(numbers + 1).any()


def test_the_npz_is_preferred(folder: Path) -> None:
    other = folder / f"{PATH}.hdf5"
    other.touch()
    assert [path.suffix for path in DSprites.found()] == [".npz"]
    other.unlink()


def test_colours_are_drawn_from_the_generator(folder: Path, numbers: np.ndarray) -> None:
    dataset = ColorDSprites()
    images = dataset.images(numbers, np.random.default_rng(1))
    masks = DSprites().images(numbers)
    assert images.shape == (len(numbers), 64, 64, 3)
    colours = images[:, -1, -1].astype(int)  # where every picture is white
    np.testing.assert_array_equal(images, masks // 255 * colours[:, np.newaxis, np.newaxis])
    assert colours.min() >= 128
    assert len(np.unique(colours, axis=0)) > 290
    assert abs(colours.mean() - 191.25) < 5  # U(0.5, 1): 0.75, give or take four standard errors
    np.testing.assert_array_equal(dataset.images(numbers, np.random.default_rng(1)), images)
    assert not np.array_equal(dataset.images(numbers, np.random.default_rng(2)), images)


def test_noise_is_drawn_from_the_generator(folder: Path, numbers: np.ndarray) -> None:
    dataset = NoisyDSprites()
    images = dataset.images(numbers, np.random.default_rng(1))
    masks = np.broadcast_to(DSprites().images(numbers), images.shape)
    assert images.shape == (len(numbers), 64, 64, 3)
    assert (images[masks > 0] == 255).all()
    assert abs(images[masks == 0].mean() - 127.5) < 0.5
    assert len(np.unique(images[masks == 0])) == 256
    np.testing.assert_array_equal(dataset.images(numbers, np.random.default_rng(1)), images)
    assert not np.array_equal(dataset.images(numbers, np.random.default_rng(2)), images)


@pytest.mark.parametrize("kind", [DSprites, ColorDSprites, NoisyDSprites])
def test_batches_depend_on_seed_and_step_alone(folder: Path, kind: type[DSprites]) -> None:
    np.testing.assert_array_equal(kind().batch(3, 7, 16), kind().batch(3, 7, 16))
    assert kind.space is DSprites.space


def test_the_variants_share_one_conversion(folder: Path) -> None:
    assert {kind().rows.path for kind in (DSprites, ColorDSprites, NoisyDSprites)} == {DSprites().rows.path}


def test_labels() -> None:
    assert [DSprites.space.factors[0].label(value) for value in range(3)] == ["square", "ellipse", "heart"]
    np.testing.assert_allclose(DSprites.space.factors[1].values, [0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    np.testing.assert_allclose(DSprites.space.factors[2].values, np.arange(40) * tau / 39)


@pytest.mark.parametrize("kind", [DSprites, ColorDSprites, NoisyDSprites])
def test_half_the_resolution_is_the_mean_of_four_pixels(data: Path, kind: type[DSprites]) -> None:
    numbers = np.arange(7, COUNT, 9973)
    small = kind(32).images(numbers, np.random.default_rng(1))
    assert small.shape == (len(numbers), *kind(32).image_shape)
    large = kind().images(numbers, np.random.default_rng(1)).astype(int)
    means = large.reshape(len(numbers), 32, 2, 32, 2, -1).sum(axis=(2, 4))
    np.testing.assert_array_equal(small, (means + 2) // 4)
    assert small.max() == 255 or kind is ColorDSprites


def test_half_the_resolution_of_the_file_is_made_the_same_way(folder: Path, numbers: np.ndarray) -> None:
    assert DSprites(32).origin == "official file"
    np.testing.assert_array_equal(DSprites(32).images(numbers), halved(DSprites().images(numbers)))


def test_without_its_file_it_is_drawn(data: Path) -> None:
    dataset = DSprites()
    assert dataset.origin == "redrawn"
    corner, heart = dataset.images([0, COUNT - 1])[..., 0]
    assert (corner[11:21, 11:21] == 255).all()  # a square of 9.6 pixels around (16, 16)
    assert np.count_nonzero(corner) == 100
    assert heart[48, 48] == 255  # the largest heart, in the last place
    with pytest.raises(UserError, match="image number 737280 is not in 0 … 737279"):
        dataset.images([COUNT])
    with pytest.raises(UserError, match="dsprites comes at 64x64 or 32x32, not 48x48"):
        DSprites(48)


@pytest.mark.parametrize(
    ("shape", "dtype", "found"),
    [((700_000, 64, 64), "u1", "700000x64x64 uint8"), ((COUNT, 32, 32), "u1", "737280x32x32"), (SHAPE, "i8", "int64")],
)
def test_another_array_is_refused(data: Path, shape: tuple, dtype: str, found: str) -> None:
    path = data / f"{PATH}.hdf5"
    path.parent.mkdir(parents=True)
    with h5py.File(path, "w") as file:
        file.create_dataset("imgs", shape, dtype)
    with pytest.raises(UserError, match=rf"\.hdf5: expected .*737280x64x64 uint8, found .*{found}"):
        DSprites()
    assert [path.suffix for path in (data.parent / "cache/lddr/arrays").iterdir()] == [".lock"]


def test_grey_values_are_refused(data: Path) -> None:
    path = data / f"{PATH}.hdf5"
    path.parent.mkdir(parents=True)
    with h5py.File(path, "w") as file:
        file.create_dataset("imgs", SHAPE, "u1", chunks=(1, 64, 64))[5, 3, 3] = 255
    with pytest.raises(UserError, match=r"\.hdf5: expected only the values 0 and 1 in 'imgs', found 255"):
        DSprites()
    assert [path.suffix for path in (data.parent / "cache/lddr/arrays").iterdir()] == [".lock"]
