import os
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from PIL import Image

from lddr.data import in_memory
from lddr.data.array_files import MappedImages, conversions
from lddr.data.dataset import identity
from lddr.data.factors import Factor, FactorGrid, FactorTable
from lddr.data.in_memory import ArrayDataset, as_images
from lddr.data.load import load_dataset
from lddr.errors import UserError


@pytest.mark.parametrize("channels", [1, 3])
def test_channels_may_come_first_or_last(channels):
    last = np.random.default_rng(0).integers(256, size=(5, 16, 16, channels), dtype=np.uint8)
    first = last.transpose(0, 3, 1, 2)
    assert np.array_equal(as_images(first, (16, 16, channels)), as_images(last, (16, 16, channels)))
    assert np.array_equal(ArrayDataset(first).images(range(5)), last)
    assert ArrayDataset(first).name == ArrayDataset(last).name


def test_the_name_depends_on_the_labels():
    images = np.zeros((3, 16, 16), np.uint8)
    factors = (Factor("a", 2),)
    tables = [FactorTable(factors, rows) for rows in ([[0], [1], [0]], [[0], [1], [-1]])]
    plain, unlabelled = ArrayDataset(images), ArrayDataset(images, FactorTable((), np.zeros((3, 0), int)))
    assert plain.name == unlabelled.name
    assert len({plain.name, *(ArrayDataset(images, table).name for table in tables)}) == 3


@pytest.mark.parametrize("shape", [(16, 16), (4, 16, 16, 2), (4, 2, 16, 16), (1, 4, 16, 16, 3)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(UserError, match="expected images of shape"):
        as_images(np.zeros(shape, np.uint8), (16, 16, 3))


IMAGES = np.random.default_rng(0).integers(256, size=(12, 20, 30, 4), dtype=np.uint8)
ARRAYS = {
    "opaque": IMAGES[..., :3],
    "grey": IMAGES[..., 0],
    "transparent": IMAGES,
    "sixteen bits": IMAGES[..., 0].astype(np.uint16) * 50,
    "square": IMAGES[:, :16, :16, :3],
}


@pytest.mark.parametrize("fit", ["pad", "crop", "stretch"])
@pytest.mark.parametrize("background", ["auto", "orange"])
@pytest.mark.parametrize("kind", ARRAYS)
def test_an_array_is_treated_as_a_folder_of_the_same_pictures(tmp_path, monkeypatch, kind, fit, background):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(in_memory, "PART_BYTES", 1)  # one image at a time
    (tmp_path / "pictures").mkdir()
    for number, image in enumerate(ARRAYS[kind]):
        Image.fromarray(image).save(tmp_path / "pictures" / f"{number:02}.png")
    np.savez(tmp_path / "pictures.npz", images=ARRAYS[kind])
    folder, file = (load_dataset(str(tmp_path / name), 16, fit, background) for name in ("pictures", "pictures.npz"))
    array = ArrayDataset(ARRAYS[kind], None, 16, fit, background)
    for other in (folder, file):
        assert np.array_equal(other.images(np.arange(12)), array.images(np.arange(12)))
        assert other.content() == array.content()
        assert other.reading == array.reading
        assert other.preparation == array.preparation


def test_without_a_resolution_images_keep_their_size_and_lose_their_transparency():
    assert ArrayDataset(IMAGES).image_shape == (20, 30, 3)
    assert np.array_equal(ArrayDataset(IMAGES[..., :3]).images([3])[0], IMAGES[3, ..., :3])


@pytest.mark.parametrize("values", [np.full((2, 16, 16), 0.2), np.full((2, 16, 16), 51, np.uint8)])
def test_floats_and_bytes_are_the_same_images(values):
    assert ArrayDataset(values).name == ArrayDataset(np.full((2, 16, 16), 51, np.uint8)).name


def test_an_array_keeps_its_name():
    """Runs of older versions are found by it."""
    images = np.arange(2 * 16 * 16, dtype=np.uint8).reshape(2, 16, 16)
    assert ArrayDataset(images).name == "array-110009dc"


@pytest.mark.parametrize(("images", "factors"), [(8, 16), (16, 8)])
def test_as_many_factors_as_images_are_wanted(images, factors):
    space = FactorGrid((Factor("column", factors),))
    sentence = f"there are {images} images, but factors of {factors}; give one row for each image"
    with pytest.raises(UserError, match=sentence):
        ArrayDataset(np.zeros((images, 16, 16), np.uint8), space)


def test_every_image_and_every_factor_counts_in_the_content():
    images = np.zeros((40, 16, 16), np.uint8)
    labels = np.arange(40).reshape(40, 1) % 2
    other_images, other_labels = images.copy(), labels.copy()
    other_images[39, 15, 15], other_labels[39] = 1, 0

    def content(images, labels, name="side"):
        return identity(ArrayDataset(images, FactorTable([Factor(name, 2)], labels)))["content"]

    known = content(images, labels)
    assert content(images.copy(), labels.copy()) == known
    found = {known, content(other_images, labels), content(images, other_labels), content(images, labels, "edge")}
    assert len(found | {identity(ArrayDataset(images))["content"]}) == 5


@pytest.mark.parametrize(
    "arranged",
    [
        lambda images: images,
        lambda images: images.transpose(0, 3, 1, 2),
        lambda images: images.astype(np.float32) / 255,
        lambda images: images[..., :1].repeat(2, 0).astype(np.uint16),
    ],
    ids=["bytes", "channels first", "floats", "sixteen bits"],
)
def test_an_array_takes_no_more_than_twice_its_size(arranged):
    images = arranged(np.random.default_rng(0).integers(256, size=(2000, 64, 64, 3), dtype=np.uint8))
    tracemalloc.start()
    dataset = ArrayDataset(images)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kept = dataset.images(0).size * len(dataset)
    assert images.nbytes + most < 2 * images.nbytes + in_memory.PART_BYTES
    assert most < kept + 4 * in_memory.PART_BYTES


MAPPED = np.random.default_rng(0).integers(256, size=(300, 16, 24, 3), dtype=np.uint8)
VIEWS = {
    "whole": lambda images: images,
    "a part": lambda images: images[7:90],
    "plain view": lambda images: np.asarray(images)[7:90],
    "every second": lambda images: images[::2],
    "channels first": lambda images: images.transpose(0, 3, 1, 2),
    "grey": lambda images: images[..., 0],
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_memory_map_stays_in_a_file_and_is_the_array(tmp_path, monkeypatch, view):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    np.save(tmp_path / "images.npy", MAPPED)
    mapped, array = (VIEWS[view](images) for images in (np.load(tmp_path / "images.npy", mmap_mode="r"), MAPPED))
    dataset, expected = ArrayDataset(mapped), ArrayDataset(array)
    numbers = np.random.default_rng(1).integers(len(array), size=40)
    assert isinstance(dataset._rows, MappedImages)
    assert np.array_equal(dataset.images(numbers), expected.images(numbers))
    assert dataset.images(3).shape == expected.images(3).shape
    assert (dataset.name, dataset.content()) == (expected.name, expected.content())
    assert np.array_equal(pickle.loads(pickle.dumps(dataset)).images([5]), expected.images([5]))  # noqa: S301
    assert bool(conversions()) == (view in ("every second", "grey"))  # the others lie there as they should


@pytest.mark.parametrize("dtype", [np.float32, np.uint16])
def test_a_memory_map_that_has_to_be_converted_is_converted_anew_when_it_changes(tmp_path, monkeypatch, dtype):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    images = np.lib.format.open_memmap(tmp_path / "images.npy", "w+", dtype, (20, 16, 16))
    images[:, 3] = 1
    first, again = ArrayDataset(images, resolution=24), ArrayDataset(images, resolution=24)
    assert len(conversions()) == 1
    assert first.image_shape == (24, 24, 1)
    images[:, 9] = 1  # not flushed
    other = ArrayDataset(images, resolution=24)
    assert first.name == again.name != other.name == ArrayDataset(np.array(images), resolution=24).name


def test_what_is_changed_in_a_copy_on_write_map_is_seen(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    np.save(tmp_path / "images.npy", MAPPED)
    images = np.load(tmp_path / "images.npy", mmap_mode="c")
    images[0] = 0
    assert not ArrayDataset(images).images(0).any()


LARGE = 96 << 20  # bytes
MEMORY = """
import sys, threading, time
import numpy as np
from lddr.data.load import as_dataset

def taken():  # without the pages of files, which the system takes back when it needs them
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("RssAnon"))

def watch():
    global most
    while not done:
        most = max(most, taken())
        time.sleep(0.001)

images = np.load(sys.argv[1], mmap_mode="r")
images = images if sys.argv[2] == "mapped" else np.array(images)
as_dataset(images[:8], quiet=True).images([0])
most = before = taken()
done, thread = [], threading.Thread(target=watch)
thread.start()
as_dataset(images).batch(0, 0, 64)
done.append(True)
thread.join()
print(most - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory by /proc")
@pytest.mark.parametrize(
    ("dtype", "kind", "share"),
    [
        (np.float64, "mapped", 0.6),
        (np.float64, "held", 2.0),
        pytest.param(np.uint8, "mapped", 0.6, marks=pytest.mark.long),
        pytest.param(np.uint8, "held", 2.0, marks=pytest.mark.long),
    ],
)
def test_the_memory_that_a_process_takes(tmp_path, kind, share, dtype):
    """A few chunks for a memory map, at most twice its size for an array."""
    shape = (LARGE // np.dtype(dtype).itemsize // 64**2, 64, 64)
    images = np.lib.format.open_memmap(tmp_path / "images.npy", "w+", dtype, shape)
    images[:] = 0
    images[::7, 20:40] = 1
    images.flush()
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "images.npy"), kind]
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    taken = int(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert taken < share * images.nbytes
