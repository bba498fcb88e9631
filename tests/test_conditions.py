import pytest

from lddr.errors import UserError
from lddr.runs.tables import parse_condition


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("gamma=10", 10.0, True),
        ("gamma==10", 10, True),
        ("gamma != 10", 10.0, False),
        ("gamma=10,20", 20, True),
        ("gamma!=10,20", 20, False),
        ("model=vae, dvae", "dvae", True),
        ("model=vae", "dvae", False),
        ("kernels=4,4,2,2", "4,4,2,2", True),
        ("kernels=4,4,4,4", "4,4,2,2", False),
        ("seed<5", 5, False),
        ("seed<=5", 5, True),
        ("mig>0.3", "none", False),
        ("dci.completeness>=0.5", 0.75, True),
    ],
)
def test_values_are_compared_as_numbers_where_they_are(text, value, holds):
    assert parse_condition(text).holds(value) is holds


@pytest.mark.parametrize("text", ["", "seed", "seed=", "=3"])
def test_what_cannot_be_read_is_said(text):
    with pytest.raises(UserError, match="cannot read the condition"):
        parse_condition(text)
