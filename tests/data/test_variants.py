import numpy as np

from lddr.data.dataset import stream
from lddr.data.variants import coloured, noisy

MASKS = (stream(0, "masks").random((300, 6, 5, 1)) < 0.4).astype(np.uint8) * 255


def test_a_sprite_has_one_colour_and_the_background_stays_black():
    images = coloured(MASKS, stream(1, "colour"))
    assert images.shape == (300, 6, 5, 3)
    for mask, image in zip(MASKS[..., 0] > 0, images, strict=True):
        assert len(np.unique(image[mask], axis=0)) == 1
        assert not image[~mask].any()


def test_colours_are_uniform_between_a_half_and_one():
    colours = coloured(np.full((4000, 1, 1, 1), 255, np.uint8), stream(2, "colour")).reshape(-1, 3) / 255
    assert colours.min() >= 127 / 255
    assert colours.max() == 1
    assert np.allclose(colours.mean(axis=0), 0.75, atol=0.01)
    assert np.allclose(colours.std(axis=0), 0.5 / np.sqrt(12), atol=0.005)
    assert abs(np.corrcoef(colours.T)[0, 1]) < 0.06


def test_noise_surrounds_a_white_sprite():
    images = noisy(MASKS, stream(3, "noise"))
    sprite = np.broadcast_to(MASKS > 0, images.shape)
    assert np.all(images[sprite] == 255)
    around = images[~sprite]
    assert np.abs(np.bincount(around, minlength=256) / len(around) * 256 - 1).max() < 0.5
    assert abs(around.mean() - 127.5) < 3


def test_all_chance_comes_from_the_generator():
    for variant in (coloured, noisy):
        assert np.array_equal(variant(MASKS, stream(4, "x")), variant(MASKS, stream(4, "x")))
        assert not np.array_equal(variant(MASKS, stream(4, "x")), variant(MASKS, stream(5, "x")))
        assert np.array_equal(variant(MASKS), variant(MASKS))
