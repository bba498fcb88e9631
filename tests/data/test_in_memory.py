import tracemalloc

import numpy as np
import pytest
from PIL import Image

from lddr.data import in_memory
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
    monkeypatch.setattr(in_memory, "CHUNK", 1)  # one image at a time
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
    assert images.nbytes + most < 2 * images.nbytes + in_memory.CHUNK
    assert most < kept + 4 * in_memory.CHUNK
