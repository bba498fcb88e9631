import pickle

import numpy as np
import pytest
import torch
from torch.utils import data

from lddr.data.dataset import as_floats, datasets, stream
from lddr.data.in_memory import ArrayDataset
from lddr.data.load import load_dataset

DRAWN = [name for name in datasets if not datasets[name].needs_files]


@pytest.fixture(scope="module", params=DRAWN)
def dataset(request):
    return datasets[request.param]()


def test_images_have_the_promised_shape_and_type(dataset):
    images = dataset.images(dataset.space.sample(stream(0, "test"), 5), stream(0, "chance"))
    assert images.shape == (5, *dataset.image_shape)
    assert images.dtype == np.uint8
    assert dataset.images(np.zeros(0, np.int64)).shape == (0, *dataset.image_shape)


def test_a_batch_depends_on_seed_and_step_alone(dataset):
    first = dataset.batch(seed=3, step=7, size=8)
    dataset.batch(seed=0, step=0, size=3)
    again = type(dataset)().batch(seed=3, step=7, size=8)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, dataset.batch(seed=3, step=8, size=8))
    assert not np.array_equal(first, dataset.batch(seed=4, step=7, size=8))


def test_a_batch_is_floats_from_0_to_1(dataset):
    batch = dataset.batch(seed=0, step=0, size=32)
    assert batch.dtype == np.float32
    assert batch.shape == (32, *dataset.image_shape)
    assert 0 <= batch.min() < batch.max() <= 1


def test_the_same_generator_gives_the_same_images(dataset):
    indices = dataset.space.sample(stream(1, "test"), 6)
    assert np.array_equal(dataset.images(indices, stream(5, "a")), dataset.images(indices, stream(5, "a")))
    assert np.array_equal(dataset.images(indices), dataset.images(indices))


def test_the_listing_says_what_it_is(dataset):
    assert len(dataset) == dataset.space.size
    assert dataset.name in repr(dataset)
    assert type(dataset).__doc__
    assert dataset.title


def test_floats_are_exact_at_both_ends():
    levels = np.arange(256, dtype=np.uint8)
    assert np.allclose(as_floats(levels), levels / 255, atol=1e-7)
    assert as_floats(levels)[[0, 255]].tolist() == [0, 1]


def test_streams_differ_by_seed_purpose_and_position():
    draws = [stream(*key).integers(2**62) for key in [(0, "a"), (1, "a"), (0, "b"), (0, "a", 0), (0, "a", 1)]]
    assert len(set(draws)) == 5
    assert stream(0, "a", 1).integers(2**62) == draws[-1]


def test_images_and_factors_by_number(dataset):
    image, factors = dataset[7]
    assert (image.shape, image.dtype) == (dataset.image_shape, np.uint8)
    assert factors.tolist() == dataset.space.factors_of(7).tolist()
    images, table = dataset[5:11:2]
    assert images.shape == (3, *dataset.image_shape)
    assert np.array_equal(images[1], image)
    assert np.array_equal(table[1], factors)
    same, _ = dataset[np.array([[7, 5], [9, 7]])]
    assert np.array_equal(same, images[[[1, 0], [2, 1]]])
    assert np.array_equal(dataset[-1][0], dataset[len(dataset) - 1][0])
    assert dataset[[]][0].shape == (0, *dataset.image_shape)
    for wrong in (len(dataset), -len(dataset) - 1, [0, len(dataset)]):
        with pytest.raises(IndexError, match=f"there are {len(dataset)} images"):
            dataset[wrong]
    with pytest.raises(TypeError, match="whole numbers"):
        dataset["7"]


def test_random_colours_differ_from_image_to_image():
    colours = {tuple(load_dataset("color_dsprites")[number][0].max(axis=(0, 1))) for number in range(5)}
    assert len(colours) == 5


def test_a_mask_and_a_loop():
    dataset = ArrayDataset(np.arange(4, dtype=np.uint8).repeat(256).reshape(4, 16, 16))
    assert dataset[np.array([True, False, False, True])][0][:, 0, 0, 0].tolist() == [0, 3]
    assert [image[0, 0, 0] for image, _ in dataset] == [0, 1, 2, 3]


@pytest.mark.parametrize("context", ["fork", pytest.param("spawn", marks=pytest.mark.long)])
def test_a_loader_of_torch_reads_it_with_workers(dataset, context):
    if context == "spawn" and dataset.name != "circles":
        pytest.skip("one dataset is enough")
    numbers = range(0, 40, 5)
    part = data.Subset(pickle.loads(pickle.dumps(dataset.torch())), numbers)  # noqa: S301
    is_parallel = dataset.name in ("circles", "color_dsprites")  # starting processes takes long
    workers = {"num_workers": 2, "multiprocessing_context": context} if is_parallel else {}
    loader = data.DataLoader(part, batch_size=4, **workers)
    images, factors = (torch.cat(each) for each in zip(*loader, strict=True))
    expected, table = dataset[numbers]
    assert images.dtype == torch.float32
    assert torch.equal(images, torch.from_numpy(as_floats(expected)).permute(0, 3, 1, 2))
    assert factors.dtype == torch.int64
    assert factors.tolist() == table.tolist()
    assert torch.equal(dataset.torch()[5][0], images[1])
    assert len(dataset.torch()) == len(dataset)
