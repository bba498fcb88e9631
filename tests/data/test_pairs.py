import numpy as np
import pytest
from PIL import Image

from lddr.data.factors import Factor, FactorTable
from lddr.data.load import as_dataset, load_dataset
from lddr.data.pairs import Pairs
from lddr.errors import UserError


def differing(dataset, pairs, count=2000):
    first, second = Pairs(dataset, pairs).sample(np.random.default_rng(3), count).reshape(2, -1)
    return dataset.space.factors_of(first) != dataset.space.factors_of(second)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_pairs_of_a_grid_differ_in_exactly_k_factors_and_every_factor_is_as_likely(k):
    differs = differing(load_dataset("rooms"), str(k))
    assert (differs.sum(axis=1) == k).all()
    assert np.allclose(differs.mean(axis=0), k / differs.shape[1], atol=0.06)


def test_random_pairs_differ_in_some_but_not_in_all_factors():
    differs = differing(load_dataset("rooms"), "random")
    counts = np.bincount(differs.sum(axis=1), minlength=differs.shape[1] + 1)
    assert counts[0] == counts[-1] == 0
    assert (counts[1:-1] > 100).all()  # of 1,000 pairs, 200 are expected of each


def test_changed_values_are_uniform_over_all_others():
    dataset = load_dataset("circles", 16)
    first, second = Pairs(dataset, "1").sample(np.random.default_rng(0), 80_000).reshape(2, -1)
    change = (dataset.space.factors_of(second) - dataset.space.factors_of(first))[:, 0] % 40
    counts = np.bincount(change[change > 0], minlength=40)[1:]
    expected = counts.sum() / 39
    assert ((counts - expected) ** 2 / expected).sum() < 90  # χ² with 38 degrees of freedom exceeds it once in 10^5


def labelled(rows):
    rows = np.array(rows)
    return as_dataset(np.arange(len(rows) * 64, dtype=np.uint8).reshape(-1, 8, 8), factors=rows)


def test_pairs_of_a_table_differ_in_exactly_k_factors_though_combinations_are_missing():
    generator = np.random.default_rng(0)
    dataset = labelled(generator.integers(0, 4, (60, 3)))
    for k in (1, 2):
        assert (differing(dataset, str(k)).sum(axis=1) == k).all()
    assert set(differing(dataset, "random").sum(axis=1)) == {1, 2}


def test_images_with_unknown_factors_are_in_no_pair():
    dataset = load_dataset("circles", 16)
    dataset.space = FactorTable((Factor("a", 2), Factor("b", 2)), [[0, 0], [0, 1], [1, 0], [1, -1], [-1, 1]])
    assert set(Pairs(dataset, "1").sample(np.random.default_rng(0), 100)) == {0, 1, 2}


@pytest.mark.parametrize(
    ("rows", "pairs", "message"),
    [
        ([[0, 0], [0, 1]], "1", "pairs need two factors that vary"),
        ([[0, 0], [1, 1]], "1", "no two images of .* were found that differ in exactly 1 factors"),
        ([[0, 0], [1, 1]], "2", "may differ in 1 to 1 factors, not in 2"),
        ([[0, 0], [1, 1]], "0", "may differ in 1 to 1 factors, not in 0"),
        ([[0, 0], [1, 1]], "some", "must be a number of factors, random or a .csv file, not 'some'"),
        ([[0, 0], [1, 1]], "none.csv", "none.csv does not exist"),
    ],
)
def test_impossible_pairs_are_refused_in_a_sentence(rows, pairs, message):
    with pytest.raises(UserError, match=message):
        Pairs(labelled(rows), pairs)


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "b", "c"):
        Image.new("L", (8, 8), ord(name)).save(tmp_path / f"{name}.png")
    return tmp_path


@pytest.mark.parametrize("table", ["one,two\na.png,c.png\nc.png,b.png\n", "one;two\n0;2\n2;1\n"])
def test_pairs_of_own_images_come_from_a_table_of_names_or_numbers(folder, table):
    (folder / "pairs.csv").write_text(table)
    first, second = (
        Pairs(load_dataset(str(folder)), str(folder / "pairs.csv")).sample(np.random.default_rng(0), 40).reshape(2, -1)
    )
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == {(0, 2), (2, 1)}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("one,two\na.png,d.png\n", "has a pair with 'd.png', which is the file name of no image"),
        ("one,two\n0,3\n", "has a pair with '3'"),
        ("one,two,three\n0,1,2\n", "must have two columns, the images of each pair, not 3"),
        ("one,two\n0,1\n1,1\n", "row 3: an image is paired with itself"),
        ("one,two\n", "has no rows"),
    ],
)
def test_a_wrong_table_of_pairs_is_refused_in_a_sentence(folder, table, message):
    (folder / "pairs.csv").write_text(table)
    with pytest.raises(UserError, match=message):
        Pairs(load_dataset(str(folder)), str(folder / "pairs.csv"))
