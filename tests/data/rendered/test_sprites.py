import itertools

import numpy as np
import pytest

from lddr.data.dataset import stream
from lddr.data.rendered.sprites import ORIENTATIONS, SCALES, SHAPES, ColorSprites, NoisySprites, Sprites
from lddr.errors import UserError

RESOLUTIONS = (64, 32)


@pytest.fixture(scope="module", params=RESOLUTIONS)
def sprites(request):
    return Sprites(request.param)


@pytest.fixture(scope="module")
def pictures(sprites):
    """All shapes, scales and orientations at 3x3 neighbouring positions: (3, 6, 40, 3, 3, pixels).

    A step further is the same picture moved by whole pixels, so that these positions stand for all.
    """
    factors = np.array(list(itertools.product(range(3), range(6), range(40), range(3), range(3))))
    return sprites.images(sprites.space.indices_of(factors)).reshape(3, 6, 40, 3, 3, -1)


@pytest.mark.parametrize("factor", range(5))
def test_neighbouring_values_give_different_images(pictures, factor):
    moved = np.moveaxis(pictures, factor, 0)
    same = np.all(moved[1:] == moved[:-1], axis=-1)
    assert not same.any(), f"{same.sum()} pairs look alike, the first at {np.argwhere(same)[0]}"


def test_the_full_circle_closes_without_a_repetition(pictures):
    assert not np.all(pictures[:, :, 0] == pictures[:, :, 39], axis=-1).any()


def test_a_quarter_turn_is_no_turn_for_the_square_only(sprites):
    quarter = [[shape, 5, turn, 15, 15] for shape in range(3) for turn in (0, 10)]
    square, ellipse, heart = sprites.images(sprites.space.indices_of(quarter)).reshape(3, 2, -1)
    assert np.mean(square[0] != square[1]) < 0.002  # the edge may fall on another pixel
    assert np.mean(ellipse[0] != ellipse[1]) > 0.01
    assert np.mean(heart[0] != heart[1]) > 0.01


def test_every_sprite_is_whole_at_the_ends_of_its_way(sprites):
    corners = np.array(list(itertools.product(range(3), [5], range(40), [0, 31], [0, 31])))
    images = sprites.images(sprites.space.indices_of(corners))[..., 0]
    assert not images[:, [0, -1]].any()
    assert not images[:, :, [0, -1]].any()


def test_a_step_of_the_position_moves_the_sprite_by_a_64th(sprites):
    for axis, factor in ((2, 3), (1, 4)):  # x moves along the columns, y along the rows, downwards
        factors = np.tile([2, 3, 7, 10, 10], (3, 1))
        factors[:, factor] = [4, 12, 28]
        images = sprites.images(sprites.space.indices_of(factors))[..., 0]
        step = sprites.resolution // 8  # eight positions
        assert np.array_equal(np.roll(images[0], step, axis=axis - 1), images[1])
        assert np.array_equal(np.roll(images[1], 2 * step, axis=axis - 1), images[2])


def test_images_are_binary_and_grow_with_the_scale(sprites, pictures):
    assert set(np.unique(pictures)) == {0, 255}
    areas = (pictures > 0).sum(axis=-1).mean(axis=(2, 3, 4))  # (shapes, scales)
    expected = np.array(SCALES) ** 2
    assert np.allclose(areas / areas[:, -1:], expected, rtol=0.05)


def test_shapes_have_the_area_of_their_formula(sprites, pictures):
    areas = (pictures[:, 5] > 0).sum(axis=-1).mean(axis=(1, 2, 3)) * (64 / sprites.resolution) ** 2
    assert np.isclose(areas[0], 2 * 15**2, rtol=0.03)  # a square in a circle
    assert np.isclose(areas[1], np.pi * 15 * 7.5, rtol=0.03)  # an ellipse


def test_an_upright_heart_is_wider_above_and_pointed_below():
    x, y = np.meshgrid(np.linspace(-1, 1, 201), np.linspace(-1, 1, 201))
    inside = SHAPES["heart"](x, y)
    assert inside.sum(axis=1)[150] > 2 * inside.sum(axis=1)[50]  # y grows upwards
    assert np.array_equal(inside, inside[:, ::-1])
    assert not inside[x**2 + y**2 > 1].any()


def test_the_factors_are_those_of_dsprites():
    assert Sprites.space.names == ("shape", "scale", "orientation", "x", "y")
    assert Sprites.space.sizes == (3, 6, 40, 32, 32)
    assert Sprites.space.factors[0].label(2) == "heart"
    assert np.allclose(np.diff(ORIENTATIONS), 9)


@pytest.mark.parametrize("variant", [ColorSprites, NoisySprites])
def test_variants_show_the_same_sprites(variant):
    indices = Sprites.space.sample(stream(0, "x"), 20)
    plain, changed = Sprites().images(indices), variant().images(indices, stream(1, "chance"))
    assert changed.shape == (20, 64, 64, 3)
    assert np.all(changed[np.broadcast_to(plain > 0, changed.shape)] >= 127)
    assert not np.array_equal(changed, variant().images(indices, stream(2, "chance")))
    assert variant(32).image_shape == (32, 32, 3)


def test_other_resolutions_are_refused():
    with pytest.raises(UserError, match="64x64 or 32x32, not 48x48"):
        Sprites(48)
