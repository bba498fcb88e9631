import numpy as np
import pytest

from lddr.data.dataset import stream
from lddr.data.drawn.infinite_dsprites import InfiniteDSprites, outline
from lddr.errors import UserError


@pytest.fixture(scope="module")
def dataset():
    return InfiniteDSprites(shapes=3)


def picture(dataset, *factors):
    return dataset.images(dataset.space.indices_of([factors]))[0, ..., 0].astype(int)


@pytest.mark.parametrize("shape", range(20))
def test_outlines_are_centred_upright_and_of_one_size(shape):
    points = outline(0, shape)
    assert np.isclose(np.hypot(*points.T).max(), 1)
    # Independently: points inside the polygon, by the even-odd rule on a fine grid.
    grid = np.linspace(-1, 1, 301)
    x, y = (axis.ravel() for axis in np.meshgrid(grid, grid))
    inside = np.zeros(len(x), bool)
    for (ax, ay), (bx, by) in zip(points, np.roll(points, -1, axis=0), strict=True):
        crosses = (ay > y) != (by > y)
        inside ^= crosses & (x < ax + (y - ay) * (bx - ax) / np.where(crosses, by - ay, 1))
    covariance = np.cov(x[inside], y[inside])
    assert np.allclose([x[inside].mean(), y[inside].mean()], 0, atol=0.02)
    assert abs(covariance[0, 1]) < 0.02 * np.trace(covariance)
    assert covariance[1, 1] >= covariance[0, 0]


def test_shapes_depend_on_seed_and_number_alone():
    assert np.array_equal(outline(0, 3), outline(0, 3))
    assert not np.allclose(outline(0, 3), outline(1, 3))
    assert not np.allclose(outline(0, 3), outline(0, 4))
    few, many = InfiniteDSprites(shapes=2), InfiniteDSprites(shapes=50)
    assert np.array_equal(picture(few, 1, 31, 5, 3, 4), picture(many, 1, 31, 5, 3, 4))
    assert len(many) == 50 * 32**4


def test_positions_move_the_sprite_by_whole_pixels(dataset):
    first, moved = picture(dataset, 0, 31, 3, 2, 5), picture(dataset, 0, 31, 3, 9, 6)
    assert np.array_equal(first[:60, :50], moved[1:61, 7:57])


def test_scale_is_proportional_to_the_side(dataset):
    areas = [(picture(dataset, 1, scale, 0, 16, 16) != 169).sum() for scale in (0, 31)]
    assert np.isclose(areas[1] / areas[0], 4, rtol=0.15)


def test_a_quarter_turn_is_one(dataset):
    quarter = picture(dataset, 2, 31, 8, 16, 16)[16:48, 16:48]
    upright = picture(dataset, 2, 31, 0, 16, 16)[16:48, 16:48]
    rotated = min(np.abs(np.rot90(upright, k) - quarter).mean() for k in (1, 3))
    assert rotated < 8 < np.abs(upright - quarter).mean()


def test_every_orientation_is_unique(dataset):
    factors = np.array([[shape, 31, turn, 0, 0] for shape in range(3) for turn in range(32)])
    images = dataset.images(dataset.space.indices_of(factors)).reshape(len(factors), -1)
    assert len(np.unique(images, axis=0)) == len(factors)


def test_images_of_many_shapes_are_half_white_half_black(dataset):
    images = dataset.images(dataset.space.sample(stream(0, "test"), 200))[..., 0]
    white, black = (images > 230).sum(), (images < 30).sum()
    assert 0.6 < white / black < 1.7


def test_bad_settings_are_refused():
    with pytest.raises(UserError, match="64x64 or 128x128"):
        InfiniteDSprites(32)
    with pytest.raises(UserError, match="at least one shape"):
        InfiniteDSprites(shapes=0)
