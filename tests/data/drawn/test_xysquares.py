import numpy as np
import pytest

from lddr.data.dataset import datasets, stream
from lddr.data.drawn.xysquares import XYSquares, XYSquares1, XYSquares4
from lddr.errors import UserError


def distances(dataset, factor):
    """The L1 distance in pixels between image 0 and those with another value of one factor."""
    values = np.zeros((8, 6), np.int64)
    values[:, factor] = np.arange(8)
    images = dataset.images(dataset.space.indices_of(values)).astype(int)
    return np.abs(images - images[0]).sum(axis=(1, 2, 3)) / 255


def test_every_channel_has_one_square_where_the_factors_say():
    dataset = XYSquares()
    assert len(dataset) == 8**6
    indices = dataset.space.sample(stream(0, "test"), 50)
    for image, factors in zip(dataset.images(indices), dataset.space.factors_of(indices), strict=True):
        for channel in range(3):
            x, y = 8 * factors[2 * channel : 2 * channel + 2]
            expected = np.zeros((64, 64), np.uint8)
            expected[y : y + 8, x : x + 8] = 255
            assert np.array_equal(image[..., channel], expected)


@pytest.mark.parametrize("factor", range(6))
def test_pixels_do_not_show_which_places_are_near(factor):
    assert distances(XYSquares(), factor).tolist() == [0, *[128] * 7]


def test_smaller_spacings_restore_the_order():
    assert distances(XYSquares1(), 0).tolist() == [0, 16, 32, 48, 64, 80, 96, 112]
    assert distances(XYSquares4(), 3).tolist() == [0, 64, 128, 128, 128, 128, 128, 128]


def test_places_are_centred():
    for dataset in (XYSquares(), XYSquares4()):
        corners = dataset.images([0, len(dataset) - 1])
        assert np.array_equal(corners[0], corners[1][::-1, ::-1])


def test_a_smaller_picture_shows_the_same():
    small, large = XYSquares(32).images([7, 1234]), XYSquares().images([7, 1234])
    assert np.array_equal(small, large[:, ::2, ::2])


@pytest.mark.parametrize(("name", "resolution"), [("xysquares", 20), ("xysquares_1", 32), ("xysquares", 8)])
def test_sizes_that_cut_squares_are_refused(name, resolution):
    with pytest.raises(UserError, match=f"cannot be drawn at {resolution}x{resolution}; use 64"):
        datasets[name](resolution)
