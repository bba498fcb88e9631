import numpy as np

from lddr.report.figures import GRID_COLOURS, latent_spaces


def test_a_panel_per_space_with_a_line_per_row_and_column():
    grid = np.stack(np.meshgrid(np.arange(4.0), np.arange(3.0), indexing="ij"), axis=-1)
    figure = latent_spaces({"one": grid, "two": -5 * grid}, "both")
    assert [axes.get_title() for axes in figure.axes] == ["one", "two"]
    for axes, points in zip(figure.axes, (grid, -5 * grid), strict=True):
        colours = [line.get_color() for line in axes.lines]
        assert colours.count(GRID_COLOURS[0]) == 4
        assert colours.count(GRID_COLOURS[1]) == 3
        drawn = np.concatenate([line.get_xydata() for line in axes.lines if line.get_color() == "black"])
        assert sorted(map(tuple, drawn)) == sorted(map(tuple, points.reshape(-1, 2)))
        low, high = axes.get_xlim()
        assert low < points[..., 0].min() < points[..., 0].max() < high


def test_a_collapsed_space_can_be_drawn():
    assert latent_spaces({"collapsed": np.zeros((3, 3, 2))}).axes[0].lines
