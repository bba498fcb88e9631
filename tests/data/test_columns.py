import numpy as np
import pytest
import torch

from lddr.data.columns import factor_table_of
from lddr.errors import UserError


class Frame:
    """What lddr asks of a table of pandas or polars."""

    def __init__(self, **columns):
        self._columns, self.columns = columns, list(columns)

    def __getitem__(self, name):
        return self._columns[name]


SHAPES, SIZES = ["box", "ball", "box", "ball"], [1.5, 1.5, 2.0, 1.5]


@pytest.mark.parametrize(
    "table",
    [
        {"shape": SHAPES, "size": SIZES},
        {"shape": np.array(SHAPES), "size": torch.tensor(SIZES)},
        Frame(shape=np.array(SHAPES, object), size=np.array(SIZES)),
        np.array(list(zip(SHAPES, SIZES, strict=True)), [("shape", "U9"), ("size", float)]),
    ],
    ids=["lists", "arrays", "frame", "structured"],
)
def test_tables_of_any_kind_name_factors_and_values(table):
    space = factor_table_of(table, 4)
    assert space.names == ("shape", "size")
    assert [factor.values for factor in space.factors] == [("ball", "box"), (1.5, 2.0)]
    assert space.rows.tolist() == [[1, 0], [0, 0], [1, 1], [0, 0]]


def test_arrays_have_numbered_factors():
    assert factor_table_of(np.array([[3, 0], [5, 0], [3, 1]])).rows.tolist() == [[0, 0], [1, 0], [0, 1]]
    assert factor_table_of([3, 5, 3]).names == ("factor 0",)
    assert factor_table_of(np.array([3, 5, 3])).rows.tolist() == [[0], [1], [0]]


@pytest.mark.parametrize(
    "column",
    [
        [2, -1, 3, -1, 2],
        np.array([2.0, np.nan, 3.0, -1.0, 2.0]),
        [2, None, 3, float("nan"), 2],
        ["b", None, "c", "", "b"],
        ["b", float("nan"), "c", "NaN", "b"],
        np.array(["b", "", "c", "NA", "b"]),
        np.array(["b", np.nan, "c", None, "b"], object),
        np.array([b"b", b"", b"c", b"nan", b"b"]),
        [False, None, True, "", False],
    ],
    ids=str,
)
def test_unknown_values_in_every_spelling(column):
    assert factor_table_of({"a": column}, 5).rows[:, 0].tolist() == [0, -1, 1, -1, 0]


@pytest.mark.parametrize(
    ("column", "values"),
    [([-1, 1, 1], (-1, 1)), ([-2, -1, 0], (-2, -1, 0)), ([-1.0, -0.5, 3.0], (-1, -0.5, 3)), (["-1", "0", "1"], None)],
)
def test_a_minus_one_that_may_well_be_a_value_is_one(column, values):
    space = factor_table_of({"a": column}, 3)
    assert space.is_complete
    assert space.factors[0].values == (values or ("-1", "0", "1"))


def test_columns_without_unknown_values_stay_as_they_are():
    assert factor_table_of({"a": [4, 2]}).factors[0].values == (2, 4)
    assert isinstance(factor_table_of({"a": [4, 2]}).factors[0].values[0], int)  # on which the content of a run depends


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"a": [1, 2]}, r"the factor a has the shape \(2,\); give one value for each of 3"),
        (np.zeros((3, 2, 2)), "expected factors of shape"),
        ({"a": [None, None, None]}, "the factor a has no known value"),
        ({"a": [1.0, np.inf, 2.0]}, "the factor a has infinite values"),
        ({"a": np.zeros(3, "datetime64[s]")}, "the factor a holds datetime64"),
        ({1: [1, 2, 3], "1": [1, 2, 3]}, "distinct names"),
    ],
)
def test_mistakes_are_sentences(table, sentence):
    with pytest.raises(UserError, match=sentence):
        factor_table_of(table, 3)
