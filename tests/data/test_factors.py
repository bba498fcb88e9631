import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lddr.data.factors import Factor, FactorGrid, FactorTable
from lddr.errors import UserError

sizes = st.lists(st.integers(1, 7), min_size=1, max_size=5)


def grid_of(sizes: list[int], hidden: tuple[int, ...] = ()) -> FactorGrid:
    names = iter("abcdefghijkl")
    return FactorGrid(
        tuple(Factor(next(names), size) for size in sizes), tuple(Factor(next(names).upper(), size) for size in hidden)
    )


@given(sizes)
def test_a_grid_numbers_its_combinations_in_order(sizes):
    grid = grid_of(sizes)
    combinations = list(itertools.product(*map(range, sizes)))
    assert grid.size == len(combinations)
    assert grid.factors_of(np.arange(grid.size)).tolist() == [list(row) for row in combinations]
    assert grid.indices_of(combinations).tolist() == list(range(grid.size))


@given(st.lists(st.integers(1, 2**12), min_size=1, max_size=5), st.data())
def test_both_directions_agree_far_beyond_32_bits(sizes, data):
    grid = grid_of(sizes)
    index = data.draw(st.integers(0, grid.size - 1))
    assert grid.indices_of(grid.factors_of(index)) == index


def test_a_huge_grid_is_exact_at_both_ends():
    grid = grid_of([2**21, 2**21, 2**20])
    assert grid.size == 2**62
    assert grid.factors_of(2**62 - 1).tolist() == [2**21 - 1, 2**21 - 1, 2**20 - 1]
    assert int(grid.indices_of([2**21 - 1, 2**21 - 1, 2**20 - 2])) == 2**62 - 2
    draws = grid.sample(np.random.default_rng(0), 1000)
    assert draws.min() >= 0
    assert draws.max() > 2**61


def test_a_grid_beyond_64_bits_is_refused():
    with pytest.raises(UserError, match="too large to number"):
        grid_of([2**32, 2**32])


def test_shapes_are_kept():
    grid = grid_of([3, 4])
    indices = np.arange(12).reshape(2, 2, 3)
    assert grid.factors_of(indices).shape == (2, 2, 3, 2)
    assert np.array_equal(grid.indices_of(grid.factors_of(indices)), indices)
    assert grid.indices_of(np.zeros((0, 2), int)).shape == (0,)


def test_hidden_factors_take_part_in_the_numbers_but_are_no_ground_truth():
    grid = grid_of([2, 3], hidden=(5,))
    assert grid.size == 30
    assert grid.names == ("a", "b")
    assert grid.sizes == (2, 3)
    assert grid.values_of(29).tolist() == [1, 2, 4]
    assert grid.factors_of(29).tolist() == [1, 2]
    assert grid.values_of(29)[-1] == 4
    assert int(grid.indices_of([1, 2])) == 25  # without a generator: the first


def test_hidden_factors_are_drawn_uniformly_with_the_ground_truth_kept():
    grid = grid_of([2, 3], hidden=(5,))
    drawn = grid.indices_of(grid.factors_of(np.full(5000, 17)), np.random.default_rng(0))
    assert np.all(grid.factors_of(drawn) == grid.factors_of(17))
    counts = np.bincount(grid.values_of(drawn)[:, -1], minlength=5)
    assert counts.min() > 850
    assert counts.max() < 1150


def test_samples_are_uniform():
    grid = grid_of([3, 4])
    counts = np.bincount(grid.sample(np.random.default_rng(1), 12_000), minlength=12)
    assert counts.min() > 850
    assert counts.max() < 1150


SPACES = [
    grid_of([3, 4, 2], hidden=(2,)),
    FactorTable(grid_of([3, 4, 2]).factors, np.random.default_rng(5).integers(0, [3, 4, 2], (400, 3))),
]


@pytest.mark.parametrize("space", SPACES, ids=["grid", "table"])
@pytest.mark.parametrize("factor", range(3))
def test_sampling_with_a_factor_held_fixes_it_and_leaves_the_others_random(space, factor):
    values = np.random.default_rng(2).integers(space.sizes[factor], size=(40, 50))
    drawn = space.factors_of(space.sample_with(np.random.default_rng(3), factor, values))
    assert np.array_equal(drawn[..., factor], values)
    for other in set(range(3)) - {factor}:
        shares = np.bincount(drawn[..., other].ravel(), minlength=space.sizes[other]) / values.size
        assert np.allclose(shares, 1 / space.sizes[other], atol=0.12)


def test_a_table_holds_any_rows_in_any_order():
    table = FactorTable((Factor("shape", 2, ("box", "ball")), Factor("x", 3)), [[1, 2], [0, 0], [1, 2], [0, 1]])
    assert table.size == 4
    assert table.factors_of([3, 0]).tolist() == [[0, 1], [1, 2]]
    assert table.indices_of([[1, 2], [0, 1]]).tolist() == [0, 3]
    both = table.indices_of(np.tile([1, 2], (200, 1)), np.random.default_rng(0))
    assert set(both.tolist()) == {0, 2}


def test_a_combination_that_is_not_there_is_named():
    table = FactorTable((Factor("shape", 2, ("box", "ball")), Factor("x", 3)), [[1, 2], [0, 0]])
    with pytest.raises(UserError, match="no image shows shape=box, x=2"):
        table.indices_of([[1, 2], [0, 2]])
    with pytest.raises(UserError, match="no image has x=1"):
        table.sample_with(np.random.default_rng(0), 1, [1])


def test_a_table_of_many_large_factors_needs_no_grid():
    generator = np.random.default_rng(0)
    table = FactorTable([Factor(f"f{i}", 10_000) for i in range(20)], generator.integers(10_000, size=(300, 20)))
    assert np.array_equal(table.indices_of(table.rows), np.arange(300))


PARTIAL = FactorTable((Factor("shape", 2, ("box", "ball")), Factor("x", 3)), [[1, 2], [-1, 0], [-1, -1], [0, 0]])


def test_unknown_values_are_known_to_be_unknown():
    assert not PARTIAL.is_complete
    assert PARTIAL.labelled().tolist() == [0, 1, 3]
    assert PARTIAL.num_labelled == 3
    assert PARTIAL.fully_labelled().tolist() == [0, 3]
    assert PARTIAL.subset(PARTIAL.fully_labelled()).rows.tolist() == [[1, 2], [0, 0]]
    assert PARTIAL.factors_of([1, 2]).tolist() == [[-1, 0], [-1, -1]]
    assert str(PARTIAL) == "shape 2 (2 of 4 known), x 3 (3 of 4 known)"


def test_an_image_with_an_unknown_value_shows_no_value():
    generator = np.random.default_rng(0)
    assert set(PARTIAL.sample(generator, 100).tolist()) == {0, 1, 2, 3}
    assert set(PARTIAL.sample_with(generator, 0, np.zeros(50, int)).tolist()) == {3}
    assert set(PARTIAL.sample_with(generator, 1, np.zeros(50, int)).tolist()) == {1, 3}
    assert PARTIAL.indices_of([0, 0]) == 3
    with pytest.raises(UserError, match="no image shows shape=ball, x=0"):
        PARTIAL.indices_of([1, 0])
    for ask in (lambda: PARTIAL.indices_of([-1, 0]), lambda: PARTIAL.sample_with(generator, 0, [-1])):
        with pytest.raises(UserError, match="shape number -1 is not in 0 … 1"):
            ask()
    with pytest.raises(UserError, match="x number -2 is not in 0 … 2"):
        FactorTable(PARTIAL.factors, [[0, -2]])


def test_a_whole_table_or_grid_is_complete():
    assert all(space.is_complete and space.num_labelled == space.size for space in SPACES)
    assert SPACES[1].labelled().tolist() == list(range(400))


def test_images_without_factors_can_still_be_drawn():
    table = FactorTable((), np.zeros((7, 0), int))
    assert table.size == 7
    assert table.factors_of([0, 6]).shape == (2, 0)
    assert set(table.sample(np.random.default_rng(0), 200).tolist()) == set(range(7))
    assert str(table) == "no factors"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda grid: grid.factors_of(12), "image number 12 is not in 0 … 11"),
        (lambda grid: grid.factors_of([-1, 0]), "image number -1 is not in"),
        (lambda grid: grid.factors_of([0.5]), "image numbers must be integers"),
        (lambda grid: grid.indices_of([[3, 0]]), "a number 3 is not in 0 … 2"),
        (lambda grid: grid.indices_of([[1, 2, 3]]), r"expected 2 factor values per image, got .* \(1, 3\)"),
        (lambda grid: grid.position("colour"), "no factor 'colour' here; the factors are: a, b"),
    ],
)
def test_mistakes_are_sentences(call, sentence):
    with pytest.raises(UserError, match=sentence):
        call(grid_of([3, 4]))


def test_labels():
    factor = Factor("scale", 2, (0.5, 1.0))
    assert [factor.label(0), factor.label(1)] == ["0.5", "1"]
    assert Factor("shape", 2, ("box", "ball")).label(1) == "ball"
    assert Factor("x", 3).label(2) == "2"
    with pytest.raises(ValueError, match="2 values but 1 labels"):
        Factor("shape", 2, ("box",))
    with pytest.raises(ValueError, match="at least one value"):
        Factor("shape", 0)
