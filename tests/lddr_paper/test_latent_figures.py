from pathlib import Path

import numpy as np
import pytest

from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import figures
from lddr.report.style import FIRST, SECOND
from lddr.report.traversals import LoadedRun
from lddr.runs.index import read_run
from lddr.trained import Trained
from lddr_paper import latent_figures as circles
from lddr_paper import latent_figures as circles_sheets
from lddr_paper.latent_figures import (
    CASES,
    axis_angle,
    class_positions,
    density,
    exemplary,
    four_observations,
    grid_turn,
    gumbel_softmax,
    latent_spaces,
    ordinal,
    ranked,
    sampled,
    shown_places,
    space_of,
)
from tests.report.grouped import grouped, invented


def run(model, mig, seed=0):
    return invented(model, seed=seed, scores={"mig": mig})


@pytest.fixture
def scaled_grids(monkeypatch):
    """Models are not needed: a run's latent space is the grid, as large as its MIG."""
    grid = np.stack(np.meshgrid(np.arange(14.0), np.arange(14.0), indexing="ij"), axis=-1)
    monkeypatch.setattr(circles, "space_of", lambda run: (1 + run.scores["mig"]) * grid)


@pytest.mark.parametrize(
    ("count", "places"), [(50, [1, 5, 10]), (10, [1, 5, 10]), (9, [1, 5, 9]), (2, [1, 2]), (1, [1])]
)
def test_best_fifth_and_tenth_are_shown_as_far_as_they_are_there(count, places):
    assert shown_places(count) == places


def test_places_have_names():
    assert [ordinal(place) for place in (1, 2, 3, 5, 10, 11, 21, 22)] == [
        "best",
        "2nd",
        "3rd",
        "5th",
        "10th",
        "11th",
        "21st",
        "22nd",
    ]


def test_runs_are_ranked_by_mig_and_others_left_out():
    runs = [run("dvae", 0.2, 0), run("dvae", 0.7, 1), run("vae", 0.9), run("dvae", 0.4, 2)]
    runs += [invented(), invented(dataset="rooms", scores={"mig": 1.0})]
    assert [member.scores["mig"] for member in ranked(grouped(runs), "dvae")] == [0.7, 0.4, 0.2]


def test_the_paper_s_figure_has_a_row_of_five_panels_for_each_family(scaled_grids):
    runs = [run(model, (seed + bonus) / 20, seed) for seed in range(12) for model, bonus in (("vae", 1), ("dvae", 6))]
    drawn = figures["circles"].make(grouped(runs))
    rows = np.array(drawn.figure.axes).reshape(2, 5)
    assert [axes.get_title() for axes in rows[0, 2:]] == ["best: MIG 0.60", "5th: MIG 0.40", "10th: MIG 0.15"]
    assert [axes.get_title() for axes in rows[1, 2:]] == ["best: MIG 0.85", "5th: MIG 0.65", "10th: MIG 0.40"]
    assert [axes.get_title() for axes in rows[:, 1]] == ["VAE: 12 runs", "D-VAE: 12 runs"]
    for axes, median in zip(rows[:, 1], (0.325, 0.575), strict=True):
        dots, rings, star = axes.lines
        assert len(dots.get_xdata()) == 12
        assert list(rings.get_xdata()) == [1, 5, 10]
        assert star.get_marker() == "*"
        assert star.get_ydata()[0] == pytest.approx(median)
    assert rows[0, 1].get_ylim() == rows[1, 1].get_ylim()
    assert rows[0, 1].get_ylim()[1] > 0.85
    assert "12 runs of the D-VAE (median MIG 0.57)" in drawn.caption


def test_the_positions_drawn_and_the_grid_lie_in_the_same_square(scaled_grids):
    figure = figures["circles"].make(grouped([run("vae", 0.5), run("dvae", 0.6)])).figure
    drawn, grid = figure.axes[0], figure.axes[len(figure.axes) // 2]
    assert (drawn.get_xlabel(), drawn.get_ylabel()) == ("x", "y")
    assert drawn.get_xlim() == drawn.get_ylim() == grid.get_xlim() == (0, 1)
    positions = drawn.lines[0].get_xydata()
    assert positions.min() == pytest.approx(0.2, abs=0.01)
    assert positions.max() == pytest.approx(0.8, abs=0.01)
    assert grid.lines[-1].get_xydata().min() == pytest.approx(0.2)
    assert grid.lines[-1].get_xydata().max() == pytest.approx(0.8)


def test_one_family_alone_is_not_compared(scaled_grids):
    with pytest.raises(UndefinedError, match="no run of the D-VAE on circles with a MIG; get one with: lddr train"):
        figures["circles"].make(grouped([run("vae", 0.5)]))


@pytest.fixture
def flat(monkeypatch):
    """Models are not needed: every latent space is the same grid."""
    grid = np.stack(np.meshgrid(np.arange(14.0), np.arange(14.0), indexing="ij"), axis=-1)
    monkeypatch.setattr(circles_sheets, "space_of", lambda run: grid)


def test_the_sheet_shows_all_runs_best_first(flat):
    runs = [invented("vae", seed=seed, scores={"mig": seed / 100, "dci": 0.5}) for seed in range(13)]
    drawn = figures["circles-vae"].make(grouped(runs))
    shown = [axes for axes in drawn.figure.axes if axes.axison]
    assert [axes.get_title() for axes in shown] == [f"MIG {mig} · DCI 50" for mig in range(12, -1, -1)]
    assert drawn.caption.startswith("The latent spaces of all 13 runs of the VAE, with MIG and DCI")
    assert figures["circles-dvae"].title == "All latent spaces of the D-VAE on Circles"


def test_the_report_shows_reconstructions_and_traversals(hardly_trained):
    figure = figures["traversals"].make(grouped([hardly_trained["dvae"].run])).figure
    rows = np.array(figure.axes).reshape(2, 2 + 1 + 10)
    assert [axes.get_title() for axes in rows[0, :2]] == ["input", "output"]
    assert [len(axes.images) for axes in rows[1]] == [1, 1, 0, *10 * [1]]


def test_the_masked_dvae_with_the_lowest_risk_is_the_example():
    def run(name, scores, **settings):
        return invented(scores=scores, folder=Path(name), **settings)

    plain = [run("low", {"elbo": -9.0}), run("high", {"elbo": -3.0})]
    labelled = [run("labelled", {"validation_risk": 0.1}, supervision="cross-entropy")]
    masked = [run(f"masked-{risk}", {"validation_risk": risk}, supervision="masked") for risk in (3.0, 1.0, 2.0)]
    gaussian = [run("gaussian", {"elbo": -1.0}, model="vae")]
    other = [run("other", {"validation_risk": 0.0}, supervision="masked", model="factor-dvae")]
    assert exemplary(grouped(gaussian))[1].name == "gaussian"
    assert exemplary(grouped([*plain, *gaussian]))[1].name == "high"
    assert exemplary(grouped([*plain, *labelled]))[1].name == "labelled"
    assert exemplary(grouped([*plain, *labelled, *other]))[1].name == "other"
    assert exemplary(grouped([*plain, *labelled, *other, *masked]))[1].name == "masked-1.0"


def test_two_classes_have_the_density_of_a_binary_concrete_variable():
    """z̄ = sigmoid(log(α₂/α₁) + logistic noise): density r / (r (1 - z) + z)², r = α₂/α₁ (Maddison et al. 2017)."""
    ratio = 3.0
    values, edges = density([1.0, ratio], bins=20, samples=400_000)
    exact = edges / (edges + ratio * (1 - edges))  # the distribution function
    assert values == pytest.approx(np.diff(exact) * 20, rel=0.06)


def test_the_density_is_one():
    values, edges = density((0.2, 0.5, 0.3), samples=10_000)
    assert (values * np.diff(edges)).sum() == pytest.approx(1)


def test_classes_without_probability_bound_the_support():
    drawn = sampled([0, 1, 0, 2, 0], samples=20_000)
    assert 0.25 <= drawn.min() < 0.26
    assert 0.74 < drawn.max() <= 0.75


def test_the_cases_are_those_the_paper_describes():
    far, near, one = (np.array(alpha) for alpha in CASES.values())
    assert np.array_equal(near, far[[0, 1, 4, 3, 2]])  # classes 3 and 5 change places
    assert sampled(near, 20_000).std() < 0.6 * sampled(far, 20_000).std()
    assert one.max() > 0.99
    assert density(far, 5, 20_000)[0][2] > 1  # class 3 has a high density although its probability is small
    assert far[2] < 0.02


def test_parameters_stand_above_densities():
    figure = gumbel_softmax([]).figure
    top, bottom = figure.axes[:3], figure.axes[3:]
    assert [axes.get_title() for axes in top] == list(CASES)
    for axes, alpha in zip(top, CASES.values(), strict=True):
        assert [bar.get_height() for bar in axes.patches] == pytest.approx(np.array(alpha) / sum(alpha))
    for axes, alpha in zip(bottom, CASES.values(), strict=True):
        assert axes.get_xlim() == (-0.02, 1.02)
        assert axes.lines[0].get_xdata()[0] == pytest.approx(np.array(alpha) @ class_positions(5) / sum(alpha))


def test_four_observations_have_the_geometry_that_the_paper_describes():
    images, gaussian, discrete = four_observations([]).figure.axes
    assert len({image.get_array().tobytes() for image in images.images}) == 4
    assert (images.get_xlabel(), images.get_ylabel()) == ("shape →", "azimuth →")
    rotated, grid = (axes.collections[0].get_offsets() for axes in (gaussian, discrete))
    for points in (rotated, grid):
        steps = np.linalg.norm(points[1:] - points[0], axis=1)
        assert steps[2] == pytest.approx(np.sqrt(2) * steps[0]) == pytest.approx(np.sqrt(2) * steps[1])
    assert np.abs(rotated[1] - rotated[0]).min() > 0.5  # both latents change
    assert np.array_equal(grid[1:3] - grid[0], [[1, 0], [0, 1]])  # along the axes
    low, high = gaussian.get_xlim()
    assert low < rotated.min() < rotated.max() < high


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


@pytest.mark.parametrize("degrees", [0, 7, 30, 45])
@pytest.mark.parametrize("stretch", [(1, 1), (-2, 0.5)])
def test_the_angle_of_a_grid_is_its_rotation(degrees, stretch):
    grid = np.stack(np.meshgrid(np.arange(4.0), np.arange(5.0), indexing="ij"), axis=-1) * stretch
    angle = np.radians(degrees)
    rotated = grid @ np.array([(np.cos(angle), np.sin(angle)), (-np.sin(angle), np.cos(angle))])
    assert axis_angle(rotated) == pytest.approx(degrees, abs=1e-6)
    assert axis_angle(rotated[..., ::-1]) == pytest.approx(degrees, abs=1e-6)  # whichever axis
    assert grid_turn(rotated) == pytest.approx(degrees, abs=1e-6)


def test_a_space_that_uses_one_axis_or_none_is_not_parallel_to_both():
    line = np.stack([np.arange(9.0).reshape(3, 3), np.zeros((3, 3))], axis=-1)
    assert axis_angle(line) == pytest.approx(90)
    assert axis_angle(np.zeros((3, 3, 2))) == pytest.approx(90)


def test_a_latent_space_comes_from_the_model_of_the_run(trained):
    one = read_run(trained[0])
    space, model = space_of(one), Trained.load(one.folder)
    assert space.shape == (14, 14, 2)
    dataset = LoadedRun(one).dataset
    corner = dataset.images(dataset.space.indices_of([[39, 3]]))
    assert space[13, 1] == pytest.approx(model.represent(corner)[0], abs=1e-5)


def test_bends_do_not_rotate_a_grid_as_a_whole():
    across, up = np.meshgrid(np.linspace(-1, 1, 9), np.linspace(-1, 1, 9), indexing="ij")
    bent = np.stack([across + 0.5 * up**2, up + 0.5 * across**2], axis=-1)
    assert axis_angle(bent) > 15
    assert grid_turn(bent) == pytest.approx(0, abs=1e-5)
