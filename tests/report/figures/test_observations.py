import numpy as np
import pytest

from lddr_paper.latent_figures import four_observations, observations


def test_four_different_observations_with_the_geometry_the_paper_speaks_of():
    shown = observations()
    assert len({image.tobytes() for image in shown.images}) == 4
    for points in (shown.gaussian, shown.discrete):
        steps = np.linalg.norm(points[1:] - points[0], axis=1)
        assert steps[2] == pytest.approx(np.sqrt(2) * steps[0]) == pytest.approx(np.sqrt(2) * steps[1])
    assert np.abs(shown.gaussian[1] - shown.gaussian[0]).min() > 0.5  # turned: both latents change
    assert np.array_equal(shown.discrete[1:3] - shown.discrete[0], [[1, 0], [0, 1]])  # along the axes


def test_images_and_two_latent_spaces():
    figure = four_observations([]).figure
    images, gaussian, discrete = figure.axes
    assert len(images.images) == 4
    assert (images.get_xlabel(), images.get_ylabel()) == ("shape →", "azimuth →")
    assert np.array_equal(gaussian.collections[0].get_offsets(), observations().gaussian)
    assert np.array_equal(discrete.collections[0].get_offsets(), observations().discrete)
    low, high = gaussian.get_xlim()
    assert low < observations().gaussian.min() < observations().gaussian.max() < high
