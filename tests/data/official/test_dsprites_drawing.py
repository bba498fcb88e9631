import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from lddr.data.dataset import stream
from lddr.data.official.dsprites import (
    EXTENT,
    STEPS,
    ColorDSprites,
    DSprites,
    NoisyDSprites,
    SpriteBits,
    drawn_sprites,
    sprite,
)

# Of the official animation (google-deepmind/dsprites-dataset, dsprites.gif: the 254 distinct of its 320 frames) and of
# 12 images of the file itself, in test data of amir-abdi/disentanglement-pytorch.
FACTS = json.loads(Path(__file__).with_name("dsprites_facts.json").read_text())
LIT = (53_612_886, 42_070_950, 32_645_028)  # pixels of all squares, ellipses and hearts


def drawn(factors: list) -> np.ndarray:
    """The pictures with these shapes, scales, orientations, x and y: (count, 5) → (count, 512)."""
    return drawn_sprites().take(np.ravel_multi_index(np.array(factors).T, (3, 6, 40, 32, 32)))


@pytest.fixture(scope="module")
def all_sprites() -> np.ndarray:
    """Every sprite at every place within a pixel: (shapes, scales, turns, down, across, rows)."""
    return np.array([sprite(*kind) for kind in np.ndindex(3, 6, 39)]).reshape(3, 6, 39, STEPS, STEPS, EXTENT)


@pytest.mark.parametrize(("source", "count"), [("animation", 254), ("labelled", 12)])
def test_the_drawing_is_the_real_picture(source: str, count: int) -> None:
    factors = [fact[:5] for fact in FACTS[source]]
    assert len(np.unique(factors, axis=0)) == count
    digests = [hashlib.sha256(picture.tobytes()).hexdigest()[:16] for picture in drawn(factors)]
    assert digests == [fact[5] for fact in FACTS[source]]


def test_as_many_pixels_are_lit_as_in_the_real_pictures(all_sprites: np.ndarray) -> None:
    bits = np.array([number.bit_count() for number in range(256)], np.uint8)
    lit = bits[all_sprites.view(np.uint8)].sum(axis=-1, dtype=np.int64)
    turns, places = np.ones(39, int), np.ones(STEPS, int)
    turns[0] = places[0] = 2  # the first of 40 orientations and of 32 positions comes once more as the last
    assert tuple(np.einsum("skoyx,o,y,x->s", lit, turns, places, places)) == LIT


def test_the_last_orientation_is_the_first() -> None:
    factors = np.stack(np.unravel_index(np.arange(0, 737_280, 61), (3, 6, 40, 32, 32)), axis=-1)
    first, last = factors.copy(), factors.copy()
    first[:, 2], last[:, 2] = 0, 39
    np.testing.assert_array_equal(drawn(first), drawn(last))


def test_the_last_place_is_the_first_32_pixels_on() -> None:
    pictures = np.unpackbits(drawn([[2, 5, 7, 0, 3], [2, 5, 7, 31, 3]]), axis=1)
    first, last = pictures.reshape(2, 64, 64)
    np.testing.assert_array_equal(np.roll(first, 32, axis=1), last)


@pytest.mark.parametrize("axis", [0, 1])
def test_neighbouring_shapes_and_scales_differ(all_sprites: np.ndarray, axis: int) -> None:
    sprites = np.moveaxis(all_sprites, axis, 0)
    assert not np.all(sprites[1:] == sprites[:-1], axis=-1).any()


def test_neighbouring_orientations_differ_but_for_twelve_smallest_squares(all_sprites: np.ndarray) -> None:
    same = np.argwhere(np.all(all_sprites[:, :, 1:] == all_sprites[:, :, :-1], axis=-1))
    assert same.tolist() == [[0, 0, 19, *place] for place in ([0, 0], [0, 1], [0, 30], [1, 0], [30, 0])]
    assert not np.all(all_sprites[:, :, 38] == all_sprites[:, :, 0], axis=-1).any()


def test_neighbouring_places_differ(all_sprites: np.ndarray) -> None:
    across = all_sprites[..., 1:, :] >> 1 == all_sprites[..., :-1, :]  # the first pixel of a step is a whole one
    down = all_sprites[:, :, :, 1:, :, :-1] == all_sprites[:, :, :, :-1, :, 1:]
    assert not np.all(across, axis=-1).any()
    assert not np.all(down, axis=-1).any()


def test_every_sprite_stays_within_its_rows_and_columns(all_sprites: np.ndarray) -> None:
    assert all_sprites.shape == (3, 6, 39, STEPS, STEPS, EXTENT)
    assert all_sprites.max() < 1 << EXTENT


def test_a_sprite_is_drawn_when_it_is_first_asked_for() -> None:
    table = SpriteBits()
    numbers = np.array([(1 * 40 + 39) * 1024 + 992, (17 * 40 + 8) * 1024 + 31])
    np.testing.assert_array_equal(table.take(numbers), drawn([[0, 1, 0, 31, 0], [2, 5, 8, 0, 31]]))
    assert np.flatnonzero(table._is_drawn).tolist() == [40, 17 * 40 + 8]
    assert table.take(numbers[:0]).shape == (0, 512)


NUMBERS = stream(0, "numbers").integers(737_280, size=500)


@pytest.fixture
def masks(monkeypatch, tmp_path):
    """Where the sprites are: (images, height, width)."""
    monkeypatch.setenv("LDDR_DATA", str(tmp_path))
    return DSprites().images(NUMBERS)[..., 0] > 0


def test_a_sprite_has_one_colour_between_a_half_and_one_and_the_background_stays_black(masks):
    images = ColorDSprites().images(NUMBERS, stream(2, "colour"))
    colours = []
    for mask, image in zip(masks, images, strict=True):
        assert not image[~mask].any()
        colours.append(*np.unique(image[mask], axis=0) / 255)
    assert np.min(colours) >= 127 / 255
    assert np.allclose(np.mean(colours, axis=0), 0.75, atol=0.03)
    assert np.allclose(np.std(colours, axis=0), 0.5 / np.sqrt(12), atol=0.015)
    assert abs(np.corrcoef(np.transpose(colours))[0, 1]) < 0.15


def test_noise_surrounds_a_white_sprite(masks):
    images = NoisyDSprites().images(NUMBERS, stream(3, "noise"))
    assert np.all(images[masks] == 255)
    around = images[~masks].ravel()
    assert np.abs(np.bincount(around, minlength=256) / len(around) * 256 - 1).max() < 0.05


@pytest.mark.parametrize("variant", [ColorDSprites, NoisyDSprites])
def test_everything_random_comes_from_the_generator(masks, variant):
    once, again, other = (variant().images(NUMBERS[:9], stream(seed, "x")) for seed in (4, 4, 5))
    assert np.array_equal(once, again)
    assert not np.array_equal(once, other)
    assert np.array_equal(variant().images(NUMBERS[:9]), variant().images(NUMBERS[:9]))
