from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lddr.errors import UserError
from lddr.networks.coders import levels_of

sides = st.integers(8, 512)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((8, 8), (1, 4, 4)),
        ((16, 16), (2, 4, 4)),
        ((32, 32), (3, 4, 4)),
        ((64, 64), (4, 4, 4)),
        ((128, 128), (5, 4, 4)),
        ((512, 512), (7, 4, 4)),
        ((9, 13), (2, 3, 4)),  # 13 → 6.5 → 3.25
        ((11, 11), (1, 6, 6)),  # 5.5 is nearer to 4 than 2.75 is, as ratios
        ((12, 12), (2, 3, 3)),
        ((96, 48), (5, 3, 2)),
        ((100, 20), (5, 4, 1)),
        ((512, 8), (7, 4, 1)),
    ],
)
def test_levels_worked_out_by_hand(size, expected):
    assert levels_of((*size, 1)) == expected


@given(sides, sides)
def test_the_longer_side_ends_near_4_and_padding_is_less_than_one_step_of_the_smallest_map(height, width):
    levels = levels_of((height, width, 3))
    assert 3 <= max(levels.height, levels.width) <= 6
    for side, padded in zip((height, width), levels.padded, strict=True):
        assert padded % 2**levels.halvings == 0
        assert side <= padded < side + 2**levels.halvings


@pytest.mark.parametrize("size", [s for s in product((7, 64, 513), repeat=2) if s != (64, 64)], ids=str)
def test_sides_out_of_range_are_refused(size):
    with pytest.raises(
        UserError, match=f"{size[0]}x{size[1]} pixels; resize them so that each side has 8 to 512 pixels"
    ):
        levels_of((*size, 1))


def test_images_without_channels_are_refused():
    with pytest.raises(UserError, match="images of 0 channels; give images of at least 1 channel"):
        levels_of((64, 64, 0))
