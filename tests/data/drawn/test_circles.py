import itertools

import numpy as np
import pytest
from PIL import Image

from lddr.data.dataset import stream
from lddr.data.drawn.circles import Circles, corners
from lddr.errors import UserError


@pytest.fixture(scope="module")
def spriteworld():
    Image.ANTIALIAS = Image.Resampling.LANCZOS  # the package wants this name, which Pillow no longer has
    from spriteworld import renderers, sprite

    def render(centres: np.ndarray, resolution: int) -> np.ndarray:
        renderer = renderers.PILRenderer(image_size=(resolution, resolution), anti_aliasing=1)
        discs = [sprite.Sprite(x=x, y=y, shape="circle", scale=0.2, c0=255, c1=255, c2=255) for x, y in centres]
        return np.stack([renderer.render([disc])[..., :1] for disc in discs])

    yield render
    del Image.ANTIALIAS


@pytest.mark.parametrize("resolution", [16, 32, 47, 64, 128])
def test_every_pixel_agrees_with_spriteworld(spriteworld, resolution):
    centres = stream(0, "centres").uniform(0.2, 0.8, (400, 2))
    assert np.array_equal(Circles(resolution).at(centres), spriteworld(centres, resolution))


def test_the_finite_space_agrees_with_spriteworld(spriteworld):
    dataset = Circles()
    values = np.linspace(0.2, 0.8, 40)
    centres = np.array(list(itertools.product(values, values)))
    assert np.array_equal(dataset.images(np.arange(1600)), spriteworld(centres, 64))


def test_x_goes_right_and_y_goes_up():
    left, right, low, high = Circles().at([[0.2, 0.5], [0.8, 0.5], [0.5, 0.2], [0.5, 0.8]])[..., 0].astype(float)
    columns, rows = np.arange(64), np.arange(64)[:, np.newaxis]
    assert (left * columns).sum() < (right * columns).sum()
    assert (high * rows).sum() < (low * rows).sum()


def test_all_1600_images_of_the_finite_space_differ():
    images = Circles().images(np.arange(1600)).reshape(1600, -1)
    assert len(np.unique(images, axis=0)) == 1600


def test_training_sees_centres_between_the_finite_ones():
    finite = {image.tobytes() for image in Circles().images(np.arange(1600))}
    drawn = {image.tobytes() for image in Circles().draw(stream(0, "x"), 500)}
    assert len(drawn - finite) > 100


def test_the_disc_has_area_one_before_scaling():
    x, y = (corners() / 0.2).T
    assert np.isclose(0.5 * np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)), 1)


@pytest.mark.parametrize("resolution", [15, 129])
def test_other_resolutions_are_refused(resolution):
    with pytest.raises(UserError, match="16x16 to 128x128"):
        Circles(resolution)


def test_centres_outside_are_refused():
    with pytest.raises(UserError, match=r"lies in \[0.2, 0.8\]"):
        Circles().at([[0.1, 0.5]])
