"""Rays and solids: against the formula for a sphere, and against small steps along the ray for every solid."""

import numpy as np
import pytest

from lddr.data.drawn.rooms import Solid, dot, first_hit, unit

SOLIDS = {
    "cube": Solid(0.8, 0.8, 0.1, is_round=False),
    "cylinder": Solid(0.7, 0.9, 0.1),
    "sphere": Solid(0, 0, 1),
    "capsule": Solid(0, 0.5, 0.7),
}


def rays(seed, count=2000):
    """A camera outside every solid and rays that go near them."""
    generator = np.random.default_rng(seed)
    angle = generator.uniform(0, 2 * np.pi)
    origin = np.array([[5 * np.cos(angle)], [5 * np.sin(angle)], [generator.uniform(0, 5)]], np.float32)
    targets = generator.uniform(-2, 2, (3, count)).astype(np.float32) + np.array([[0], [0], [1]], np.float32)
    return origin, unit(targets - origin)


def test_sphere_is_met_where_the_formula_says():
    origin, directions = rays(0)
    centre = np.array([[0], [0], [1]]) - origin
    nearest = dot(directions, centre)
    inside = 1 - dot(centre, centre) + nearest**2
    way = first_hit(SOLIDS["sphere"], origin, directions)
    sure = np.abs(inside) > 0.01  # a ray that only just touches may count either way
    assert np.array_equal(np.isfinite(way)[sure], inside[sure] > 0)
    hit = sure & (inside > 0)
    assert np.allclose(way[hit], (nearest - np.sqrt(np.maximum(inside, 0)))[hit], atol=0.02)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("solid", SOLIDS.values(), ids=SOLIDS)
def test_the_first_meeting_is_found(solid, seed):
    origin, directions = rays(seed)
    way = first_hit(solid, origin, directions)
    steps = np.linspace(0, 10, 500, dtype=np.float32)
    gaps = np.stack([solid.surface(origin + step * directions)[0] for step in steps])  # (steps, rays)
    before = np.where(steps[:, None] < way, gaps, np.inf).min(0)
    assert before.min() > -1e-4  # nothing is in front of a hit, nor anywhere on the way of a miss
    hit = np.isfinite(way)
    assert 0.1 < hit.mean() < 0.9
    assert np.abs(solid.surface(origin + way[hit] * directions[:, hit])[0]).max() < 1.1e-3


@pytest.mark.parametrize("solid", SOLIDS.values(), ids=SOLIDS)
def test_solids_stand_on_the_floor_and_face_outwards(solid):
    top, bottom = (np.array([[0], [0], [height]], np.float32) for height in (2 * solid.middle, 0))
    for point, upward in ((top, 1), (bottom, -1)):
        gap, outward = solid.surface(point)
        assert abs(gap[0]) < 1e-6
        assert np.allclose(outward[:, 0], [0, 0, upward])
