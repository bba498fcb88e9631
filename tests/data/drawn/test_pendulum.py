import numpy as np
import pytest

from lddr.data.drawn.pendulum import Pendulum, scene
from lddr.errors import UserError


@pytest.fixture(scope="module")
def dataset():
    return Pendulum()


def test_light_bob_and_both_ends_of_the_shadow_lie_on_rays():
    light, pendulum = np.deg2rad(np.random.default_rng(0).uniform(-45, 45, (2, 500)))
    x, bob, shadow = scene(light, pendulum)
    for (through_x, through_y), end in (
        ((bob[:, 0], bob[:, 1]), shadow[:, 0]),
        ((np.full(500, 10.0), np.full(500, 10.0)), shadow[:, 1]),
    ):
        # The light (x, 20.5), the point and the end (end, 0) are collinear.
        assert np.allclose((through_x - x) * (0 - 20.5), (end - x) * (through_y - 20.5))
    assert np.allclose(np.hypot(bob[:, 0] - 10, bob[:, 1] - 10), 9.5)
    assert 0 <= shadow.min() < shadow.max() <= 20.01


def test_hand_worked_scene():
    x, bob, shadow = scene(np.deg2rad([45.0]), np.deg2rad([0.0]))
    assert np.allclose(x, -0.5)
    assert np.allclose(bob, [[10, 0.5]])
    assert np.allclose(shadow, [[-0.5 + 20.5 * 10.5 / 20, 20]])


def test_the_shadow_follows_from_the_angles(dataset):
    rows = dataset.space.factors_of(np.arange(len(dataset)))
    assert len(np.unique(rows[:, :2], axis=0)) == len(dataset) == 64 * 64
    position, length = rows[:, 2].reshape(64, 64), rows[:, 3].reshape(64, 64)
    assert (np.diff(position, axis=0) >= 0).all()  # a light further left throws the shadow further right
    assert abs(np.corrcoef(rows[:, 0], rows[:, 2])[0, 1]) > 0.7
    assert np.array_equal(length, length[::-1, ::-1])  # mirrored scenes


def test_mirrored_angles_give_mirrored_pictures(dataset):
    numbers = np.arange(0, len(dataset), 41)
    images, mirrored = (dataset.images(some).astype(int) for some in (numbers, len(dataset) - 1 - numbers))
    assert np.abs(images - mirrored[:, :, ::-1]).max() <= 1


def test_shadows_have_their_length_in_the_picture(dataset):
    """Dark pixels on the ground's row are as many as the shadow is long."""
    numbers = np.arange(0, len(dataset), 41)
    rows = dataset.space.factors_of(numbers)
    _, bob, shadow = scene(*np.deg2rad(np.linspace(-45, 45, 64))[rows[:, :2]].T)
    row = 63 - int((0 + 2.25) / 24.5 * 64)
    clear = bob[:, 1] > 2.5  # the bob does not hide a part of it
    dark = (255 - dataset.images(numbers)[clear][:, row].astype(float).mean(axis=2)).sum(axis=1) / 255
    length = np.abs(np.diff(shadow[clear])[:, 0]) * 64 / 24.5
    assert np.corrcoef(dark, length)[0, 1] > 0.999


def test_other_resolutions():
    assert Pendulum(32).images([5]).shape == (1, 32, 32, 3)
    with pytest.raises(UserError, match="16x16 to 128x128"):
        Pendulum(256)
