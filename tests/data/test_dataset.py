import numpy as np
import pytest

from lddr.data.dataset import as_floats, datasets, stream

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
