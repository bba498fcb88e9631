import numpy as np
import pytest

from lddr.config import configure
from lddr.report.style import FIRST, SECOND
from lddr.report.traversals import LoadedRun, latent_spaces, space_of
from lddr.runs.index import Run, flat_settings
from lddr.trained import train
from lddr_paper.latent_figures import axis_angle, grid_turn


def test_a_panel_per_space_with_a_line_per_row_and_column():
    grid = np.stack(np.meshgrid(np.arange(4.0), np.arange(3.0), indexing="ij"), axis=-1)
    figure = latent_spaces({"one": grid, "two": -5 * grid}, "both")
    assert [axes.get_title() for axes in figure.axes] == ["one", "two"]
    for axes, points in zip(figure.axes, (grid, -5 * grid), strict=True):
        colours = [line.get_color() for line in axes.lines]
        assert colours.count(FIRST) == 4
        assert colours.count(SECOND) == 3
        drawn = np.concatenate([line.get_xydata() for line in axes.lines if line.get_color() == "black"])
        assert sorted(map(tuple, drawn)) == sorted(map(tuple, points.reshape(-1, 2)))
        low, high = axes.get_xlim()
        assert low < points[..., 0].min() < points[..., 0].max() < high


def test_a_collapsed_space_can_be_drawn():
    assert latent_spaces({"collapsed": np.zeros((3, 3, 2))}).axes[0].lines


@pytest.mark.parametrize("turn", [0, 7, 30, 45])
@pytest.mark.parametrize("stretch", [(1, 1), (-2, 0.5)])
def test_the_angle_of_a_grid_is_how_far_it_is_turned(turn, stretch):
    grid = np.stack(np.meshgrid(np.arange(4.0), np.arange(5.0), indexing="ij"), axis=-1) * stretch
    angle = np.radians(turn)
    turned = grid @ np.array([(np.cos(angle), np.sin(angle)), (-np.sin(angle), np.cos(angle))])
    assert axis_angle(turned) == pytest.approx(turn, abs=1e-6)
    assert axis_angle(turned[..., ::-1]) == pytest.approx(turn, abs=1e-6)  # whichever axis
    assert grid_turn(turned) == pytest.approx(turn, abs=1e-6)


def test_a_space_that_uses_one_axis_or_none_is_not_parallel_to_both():
    line = np.stack([np.arange(9.0).reshape(3, 3), np.zeros((3, 3))], axis=-1)
    assert axis_angle(line) == pytest.approx(90)
    assert axis_angle(np.zeros((3, 3, 2))) == pytest.approx(90)


def test_a_latent_space_comes_from_the_model_of_the_run(tmp_path):
    config = configure("vae", "circles", "quick", steps=1, width=1)
    model = train("circles", "vae", "quick", out=tmp_path, steps=1, width=1)
    one = Run(tmp_path / config.run_name, "finished", flat_settings(config.as_dict()), {})
    space = space_of(one)
    assert space.shape == (14, 14, 2)
    dataset = LoadedRun(one).dataset
    corner = dataset.images(dataset.space.indices_of([[39, 3]]))
    assert space[13, 1] == pytest.approx(model.represent(corner)[0], abs=1e-5)


def test_bends_do_not_turn_a_grid_as_a_whole():
    across, up = np.meshgrid(np.linspace(-1, 1, 9), np.linspace(-1, 1, 9), indexing="ij")
    bent = np.stack([across + 0.5 * up**2, up + 0.5 * across**2], axis=-1)
    assert axis_angle(bent) > 15
    assert grid_turn(bent) == pytest.approx(0, abs=1e-5)
