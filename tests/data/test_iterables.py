import pickle

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils import data

from lddr.data import in_memory as items
from lddr.data.array_files import MappedImages, conversions
from lddr.data.in_memory import ArrayDataset
from lddr.data.load import as_dataset, indexed, own_size
from lddr.errors import UserError

IMAGES = np.random.default_rng(0).integers(256, size=(30, 12, 20, 3), dtype=np.uint8)
GREY = IMAGES[..., :1]
LABELS = np.arange(30) % 3
TENSORS = torch.from_numpy(IMAGES).permute(0, 3, 1, 2)


class Pictures(data.Dataset):
    """Items made by a function of their number."""

    def __init__(self, item, count=30):
        self.item, self.count = item, count

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        if number >= self.count:
            raise IndexError(number)
        return self.item(number)


class Stream(data.IterableDataset):
    """The same, without an index."""

    def __init__(self, item):
        self.item = item

    def __iter__(self):
        return map(self.item, range(30))


FORMS = {
    "image": lambda i: IMAGES[i],
    "bytes, channels first": lambda i: TENSORS[i],
    "floats": lambda i: TENSORS[i].float() / 255,
    "doubles, channels last": lambda i: IMAGES[i] / 255,
    "picture": lambda i: Image.fromarray(IMAGES[i]),
    "pair": lambda i: (TENSORS[i], LABELS[i]),
    "list": lambda i: [Image.fromarray(IMAGES[i]), torch.tensor(LABELS[i]), "word"],
    "dict": lambda i: {"image": TENSORS[i], "label": LABELS[i]},
}


def is_same(dataset, images=IMAGES):
    return np.array_equal(dataset.images(np.arange(len(images))), images) and dataset.name == ArrayDataset(images).name


@pytest.mark.parametrize("style", [Pictures, Stream])
@pytest.mark.parametrize("form", FORMS)
def test_items_of_every_form_are_the_images_of_the_array(form, style):
    assert is_same(as_dataset(style(FORMS[form])))


@pytest.mark.parametrize("mode", ["L", "1", "I;16"])
def test_grey_pictures_have_one_channel(mode):
    if mode == "I;16":
        pictures, expected = [Image.fromarray(image[..., 0].astype(np.uint16) * 256) for image in GREY], None
    else:
        pictures = [Image.fromarray(image[..., 0]).convert(mode) for image in GREY]
        expected = np.stack([np.asarray(picture.convert("L"))[..., None] for picture in pictures])
    dataset = as_dataset(Pictures(pictures.__getitem__))
    assert dataset.image_shape == (12, 20, 1)
    if expected is not None:
        assert is_same(dataset, expected)


def test_a_tensor_dataset():
    assert is_same(as_dataset(data.TensorDataset(TENSORS.float() / 255)))
    assert is_same(as_dataset(data.Subset(data.TensorDataset(TENSORS), range(5, 25))), IMAGES[5:25])


@pytest.mark.parametrize("workers", [0, 2])
def test_of_a_loader_the_dataset_is_used_in_its_order_and_that_is_said(capsys, workers):
    loader = data.DataLoader(data.TensorDataset(TENSORS), batch_size=7, shuffle=True, num_workers=workers)
    assert is_same(as_dataset(loader))
    said = capsys.readouterr().err
    assert "only the dataset of this DataLoader is used" in said
    assert "batch_size, shuffle, sampler and collate_fn" in said
    as_dataset(loader, quiet=True)
    assert not capsys.readouterr().err


def test_a_loader_without_an_index_is_read_once(capsys):
    loader = data.DataLoader(Stream(FORMS["pair"]), batch_size=7)
    dataset = as_dataset(loader, factors=True)
    assert np.array_equal(dataset.images(np.arange(30)), IMAGES)
    assert dataset.space.rows[:, 0].tolist() == LABELS.tolist()
    assert "to resume a run, give the same images in the same order" in capsys.readouterr().err


@pytest.mark.parametrize(
    "iterable",
    [
        lambda: (image for image in IMAGES),
        lambda: (IMAGES[first : first + 8] for first in range(0, 30, 8)),
        lambda: ((TENSORS[first : first + 8], LABELS[first : first + 8]) for first in range(0, 30, 8)),
        lambda: ({"image": TENSORS[first : first + 8], "a": LABELS[first : first + 8]} for first in range(0, 30, 8)),
        lambda: map(Image.fromarray, IMAGES),
    ],
    ids=["images", "batches", "pairs of batches", "dicts of batches", "pictures"],
)
def test_generators_of_images_or_batches(iterable):
    assert is_same(as_dataset(iterable()))


def test_grey_batches_have_no_channels_and_the_last_may_be_small():
    batches = (GREY[first : first + 9, ..., 0] for first in range(0, 30, 9))  # the last of 3, as an RGB image has
    assert is_same(as_dataset(batches), GREY)


def test_an_iterable_is_read_once_however_often_it_is_asked_for():
    given = indexed(iter(IMAGES))
    assert indexed(given) is given
    assert own_size(given) == "12x20"
    assert is_same(as_dataset(given))
    assert as_dataset(given, resolution="24x40").image_shape == (24, 40, 3)


def test_an_iterable_may_not_be_larger_than_the_limit(monkeypatch):
    monkeypatch.setattr(items, "MOST_OF_ITERABLE", 20 * IMAGES[0].nbytes)
    read = []
    with pytest.raises(UserError, match=r"an iterable may have 0\.0 GB of images in bytes, this one has more; give a"):
        as_dataset(image for image in IMAGES if read.append(0) is None)
    assert len(read) == 21
    as_dataset(iter(IMAGES[:20]))


def test_slow_iterables_say_how_far_they_are(monkeypatch, capsys):
    monkeypatch.setattr(items, "LONG", 0.0)
    as_dataset(iter(IMAGES))
    assert "lddr: reading images: 30 after " in capsys.readouterr().err


def test_images_of_an_iterable_have_one_shape():
    with pytest.raises(UserError, match="must have one shape, not 12x20x3 and 12x19x3"):
        as_dataset(iter([IMAGES[0], IMAGES[1][:, :19]]))


@pytest.mark.parametrize(
    ("item", "names"),
    [
        (lambda i: (IMAGES[i], int(LABELS[i])), ["label"]),
        (lambda i: (IMAGES[i], LABELS[i], torch.tensor(i % 2)), ["factor 0", "factor 1"]),
        (lambda i: (IMAGES[i], torch.tensor([LABELS[i], i % 2])), ["factor 0", "factor 1"]),
        (lambda i: {"image": IMAGES[i], "shape": "abc"[LABELS[i]]}, ["shape"]),
    ],
)
def test_labels_become_factors_if_asked_for(capsys, item, names):
    plain = as_dataset(Pictures(item))
    assert plain.space.names == ()
    assert capsys.readouterr().err.count("the labels of this dataset are not used; factors=True takes them") == 1
    labelled = as_dataset(Pictures(item), factors=True)
    assert list(labelled.space.names) == names
    assert labelled.space.rows[:, 0].tolist() == LABELS.tolist()
    assert labelled.name != plain.name
    assert "not used" not in capsys.readouterr().err


def test_labels_may_be_given_apart():
    dataset = as_dataset(Pictures(FORMS["pair"]), factors={"side": np.arange(30) % 2})
    assert dataset.space.names == ("side",)


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        (lambda i: IMAGES[i], "item 0 of the dataset: its labels are missing"),
        (lambda i: (IMAGES[i], GREY[i]), "item 0 of the dataset: label has the shape"),
        (
            lambda i: (IMAGES[i], 1, *([2] if i == 7 else [])),
            "item 7 of the dataset: its labels are factor 0, factor 1",
        ),
    ],
)
def test_labels_that_are_no_factors_are_refused(item, sentence):
    with pytest.raises(UserError, match=sentence):
        as_dataset(Pictures(item), factors=True)
    with pytest.raises(UserError, match="an array has no labels of its own"):
        as_dataset(IMAGES, factors=True)


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        (lambda i: TENSORS[i].float() - 100, "item 0 of the dataset: images must be uint8 from 0 to 255 or floats"),
        (lambda i: i, "item 0 of the dataset: expected an image"),
        (lambda i: {"picture": IMAGES[i]}, "a dict needs the key 'image', this one has 'picture'"),
        (lambda i: GREY[i] if i != 11 else IMAGES[i], "item 11 of the dataset: it is in colour and others are grey"),
    ],
)
def test_other_items_are_refused(monkeypatch, item, sentence):
    monkeypatch.setattr(items, "LOOKED_AT", 3)
    with pytest.raises(UserError, match=sentence):
        as_dataset(Pictures(item))
    with pytest.raises(UserError, match="there are no images to learn from"):
        as_dataset(Pictures(item, count=0))


def test_items_of_several_sizes_become_squares_and_that_is_said():
    dataset = as_dataset(Pictures(lambda i: IMAGES[i][:, : 20 - i % 2]))
    assert dataset.image_shape == (16, 16, 3)
    assert dataset.reading == (
        "30 pictures of 19x12 to 20x12 pixels are read at 16x16 in colour; "
        "those that are not square are padded (set fit to crop or stretch instead)"
    )


def test_transparent_items_get_the_background_that_an_array_of_them_gets():
    transparent = np.concatenate([IMAGES // 4, IMAGES[..., :1]], axis=3)
    dataset, array = as_dataset(Pictures(transparent.__getitem__)), ArrayDataset(transparent)
    assert dataset.preparation == array.preparation
    assert np.array_equal(dataset.images(np.arange(30)), array.images(np.arange(30)))


def test_many_images_of_a_dataset_go_into_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(items, "MOST_IN_MEMORY", IMAGES.nbytes - 1)
    dataset = as_dataset(Pictures(FORMS["pair"]), factors=True)
    assert isinstance(dataset._rows, MappedImages)
    assert dataset.content() == ArrayDataset(IMAGES, dataset.space).content()
    assert dataset.name == ArrayDataset(IMAGES, dataset.space).name
    assert np.array_equal(pickle.loads(pickle.dumps(dataset)).images([3, 5]), IMAGES[[3, 5]])  # noqa: S301
    as_dataset(Pictures(FORMS["pair"]))
    assert len(conversions()) == 1  # called after its content
