"""Rooms: every factor shows, colours stay where they belong, and the tables add up to the picture they stand for."""

from functools import cache

import numpy as np
import pytest

from lddr.data.dataset import datasets
from lddr.data.drawn.rooms import PALETTE, WHITE, Rooms, coloured, lights, paint_layers
from lddr.errors import UserError

SHAPES3D = {"floor hue": 10, "wall hue": 10, "object hue": 10, "scale": 8, "shape": 4, "azimuth": 15}
FLOOR, WALL, OBJECT, SCALE, SHAPE, AZIMUTH = range(6)
GEOMETRIES = np.stack(np.meshgrid(range(4), range(15), range(8), indexing="ij"), axis=-1)  # shape, azimuth, scale


light_in = cache(lights)


@pytest.fixture(params=[32, pytest.param(64, marks=pytest.mark.long)])
def rooms(request):
    return Rooms(request.param)


def varied(rooms, factor, contexts):
    """Every value of one factor in random contexts: (contexts, values, height, width, 3), as signed numbers."""
    size = rooms.space.sizes[factor]
    values = np.repeat(
        rooms.space.factors_of(rooms.space.sample(np.random.default_rng(factor), (contexts, 1))), size, 1
    )
    values[..., factor] = np.arange(size)
    images = rooms.images(rooms.space.indices_of(values).ravel())
    return images.reshape(contexts, size, *rooms.image_shape).astype(int)


def shown(rooms, hues, geometries):
    """The images of these (shape, azimuth, scale) in one colouring: (…, 3) → (…, height, width, 3)."""
    shape, azimuth, scale = np.moveaxis(geometries, -1, 0)
    values = np.stack([*(np.full_like(shape, hue) for hue in hues), scale, shape, azimuth], axis=-1)
    return rooms.images(rooms.space.indices_of(values).ravel()).reshape(*shape.shape, *rooms.image_shape).astype(int)


def test_factors_are_those_of_shapes3d():
    assert dict(zip(Rooms.space.names, Rooms.space.sizes, strict=True)) == SHAPES3D
    assert list(Rooms.space.names) == list(SHAPES3D)
    assert len(Rooms()) == 480_000
    assert [Rooms.space.factors[SHAPE].label(value) for value in range(4)] == ["cube", "cylinder", "sphere", "capsule"]
    assert datasets["rooms"] is Rooms


def test_nothing_is_drawn_before_it_is_needed(monkeypatch):
    monkeypatch.setattr("lddr.data.drawn.rooms.lights", lambda _: pytest.fail("drawn too early"))
    assert (Rooms.image_shape, Rooms(32).image_shape) == ((64, 64, 3), (32, 32, 3))
    assert "480000 images 64x64x3" in repr(Rooms())


@pytest.mark.parametrize("resolution", [0, 16, 63, 128])
def test_refuses_other_resolutions(resolution):
    with pytest.raises(UserError, match=f"resolution 32 or 64, not {resolution}"):
        Rooms(resolution)


@pytest.mark.parametrize("count", [0, 1, 7])
def test_images_are_bytes_of_the_promised_shape(rooms, count):
    images = rooms.images(rooms.space.sample(np.random.default_rng(0), count))
    assert images.dtype == np.uint8
    assert images.shape == (count, *rooms.image_shape)


def test_refuses_numbers_that_are_no_image(rooms):
    with pytest.raises(UserError, match="480000"):
        rooms.images([480_000])


@pytest.mark.parametrize("factor", range(6), ids=list(SHAPES3D))
def test_all_values_of_a_factor_can_be_told_apart(rooms, factor):
    images = varied(rooms, factor, contexts=30)
    for value in range(images.shape[1] - 1):
        others = images[:, value + 1 :]
        difference = np.abs(others - images[:, value, None]).max((2, 3, 4))
        assert difference.min() > 15  # grey levels somewhere in the image, far more than rounding


def test_azimuth_shows_with_every_object(rooms):
    images = shown(rooms, (3, 3, 3), GEOMETRIES)  # one colour for all: only the light can tell
    assert np.abs(np.diff(images, axis=1)).max((-3, -2, -1)).min() > 15


@pytest.mark.parametrize("factor", [FLOOR, WALL, OBJECT])
def test_a_hue_colours_its_own_material_only(rooms, factor):
    images = varied(rooms, factor, contexts=200)
    side = rooms.image_shape[0]
    middle = slice(side // 2 - side // 32, side // 2 + side // 32)  # the camera looks at the object
    patches = {
        FLOOR: images[:, :, -side // 8 :],
        WALL: images[:, :, : side // 32],
        OBJECT: images[:, :, middle, middle],
    }
    for material, patch in patches.items():
        change = np.ptp(patch, axis=1).max(-1)  # over the values of the hue, in the channel that changes most
        assert np.all(change > 30) if material == factor else not change.any()


def test_objects_grow_with_scale_and_stay_inside(rooms):
    outline = np.any(shown(rooms, (3, 3, 0), GEOMETRIES) != shown(rooms, (3, 3, 5), GEOMETRIES), axis=-1)
    assert np.diff(outline.sum((-2, -1)), axis=2).min() > 0
    border = [outline[..., 0, :], outline[..., -1, :], outline[..., :, 0], outline[..., :, -1]]
    assert not np.any(border)


def test_left_and_right_are_mirror_images(rooms):
    outline = np.any(shown(rooms, (3, 3, 0), GEOMETRIES) != shown(rooms, (3, 3, 5), GEOMETRIES), axis=-1)
    from_the_other_side = outline[:, ::-1, :, :, ::-1]
    assert np.mean(outline != from_the_other_side) < 1e-3  # a grazing ray or two may fall to either side


def test_light_is_shared_between_the_materials(rooms):
    light = light_in(rooms.image_shape[0])
    total = sum(light)
    assert min(layer.min() for layer in light) >= 0
    assert total.min() > 0.2
    assert total.max() < 1 + 1e-5


def test_tables_add_up_to_the_picture(rooms):
    light = light_in(rooms.image_shape[0])
    indices = rooms.space.sample(np.random.default_rng(1), 1000)
    *hues, scale, shape, azimuth = rooms.space.factors_of(indices).T
    floor, wall, thing, shine = (layer[scale, shape, azimuth, :, :, None] for layer in light)
    colours = [PALETTE[hue][:, None, None] for hue in hues]
    expected = WHITE * (floor * colours[0] + wall * colours[1] + thing * colours[2] + shine)
    assert np.abs(rooms.images(indices) - expected).max() < 1.51  # three roundings


def test_no_choice_of_hues_passes_white(rooms):
    brightest = np.zeros((8, 4, 15, *rooms.image_shape), int)
    for layer in paint_layers(rooms.image_shape[0]):
        brightest[:, :, :, layer.rows, layer.columns] += layer.table.max(3)  # the hues are chosen independently
    assert brightest.max() <= 255


def test_images_depend_on_their_number_alone(rooms):
    indices = rooms.space.sample(np.random.default_rng(2), 50)
    images = rooms.images(indices)
    assert np.array_equal(images, rooms.images(indices[::-1], np.random.default_rng(3))[::-1])


def test_every_drawing_is_the_same():
    light = light_in(32)  # another rendering than the one of `paint_layers`
    first, again = paint_layers(32), (coloured(light.floor), coloured(light.wall), coloured(light.thing, light.shine))
    assert all(np.array_equal(one.table, other.table) for one, other in zip(first, again, strict=True))


def test_resolutions_show_the_same_scene():
    indices = Rooms.space.sample(np.random.default_rng(4), 100)
    large = Rooms(64).images(indices).reshape(100, 32, 2, 32, 2, 3).mean((2, 4))
    assert np.abs(large - Rooms(32).images(indices)).mean() < 1
