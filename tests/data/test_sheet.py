import numpy as np
import pytest

from lddr.data.dataset import Dataset, datasets
from lddr.data.factors import Factor, FactorTable
from lddr.data.sheet import COLUMNS, GAP, RANDOM_ROWS, as_picture, factor_sheet, overview

DRAWN = [name for name in datasets if not datasets[name].needs_files]


class Numbers(Dataset):
    """Flat images as bright as their number, without every combination of the factors."""

    name = "numbers"
    space = FactorTable((Factor("a", 2), Factor("b", 3)), [[0, 0], [0, 2], [1, 0]])
    image_shape = (8, 8, 1)

    def images(self, indices, generator=None):
        return np.broadcast_to(100 + np.asarray(indices, np.uint8).reshape(-1, 1, 1, 1), (len(indices), 8, 8, 1))


def cells(sheet, cell: int) -> np.ndarray:
    """The middle pixel of every cell: (rows, COLUMNS, 3)."""
    pixels = np.asarray(sheet)
    margin = pixels.shape[1] - COLUMNS * (cell + GAP)
    rows = (pixels.shape[0] - GAP) // (cell + GAP)
    return pixels[GAP + cell // 2 :: cell + GAP, margin + cell // 2 :: cell + GAP][:rows, :COLUMNS]


def test_a_row_per_factor_with_the_most_similar_image_where_a_combination_is_missing_and_gaps_for_values():
    shown = cells(factor_sheet(Numbers(), seed=0, cell=16), 16)[..., 0]
    assert shown.shape == (2 + RANDOM_ROWS, COLUMNS)
    white = 255
    a_varied = {(100, 102), (101, 102)}  # around image 0 or 2, or around image 1
    b_varied = {(100, white, 101), (102, white, 101)}
    assert tuple(shown[0, :2]) in a_varied
    assert tuple(shown[1, :3]) in b_varied
    assert np.all(shown[0, 2:] == white)
    assert set(np.unique(shown[2:])) <= {100, 101, 102}


@pytest.mark.parametrize("name", DRAWN)
def test_every_drawn_dataset_has_a_sheet_that_depends_on_the_seed(name):
    dataset = datasets[name]()
    first, again, other = (factor_sheet(dataset, seed) for seed in (0, 0, 1))
    assert first.height == GAP + (len(dataset.space.names) + RANDOM_ROWS) * (64 + GAP)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_sheet_of_partly_labelled_images_varies_what_is_known():
    dataset = Numbers()
    dataset.space = FactorTable(
        (Factor("a", 2), Factor("b", 3)), [[-1, -1], [0, 2], [-1, 0], [1, -1], [0, 1], [-1, -1]]
    )
    for seed in range(5):
        shown = cells(factor_sheet(dataset, seed, cell=16), 16)[..., 0]
        assert shown[0, 0] in (101, 104)  # a = 0, as the image in the middle
        assert shown[0, 1] == 103  # a = 1: the only one
        assert shown[1, :3].tolist() == [102, 104, 101]
    dataset.space = FactorTable((Factor("a", 1), Factor("b", 1)), [[-1, 0], [0, -1]])  # none has both
    assert cells(factor_sheet(dataset, cell=16), 16)[:2, 0, 0].tolist() == [101, 100]


def test_the_overview_has_a_row_per_dataset():
    sheet = overview([Numbers(), Numbers()], cell=16)
    assert cells(sheet, 16).shape == (2, COLUMNS, 3)


def test_pixels_stay_sharp():
    image = np.zeros((2, 2, 1), np.uint8)
    image[0, 0] = 255
    assert np.array_equal(np.asarray(as_picture(image, 4))[..., 0], np.kron(image[..., 0], np.ones((2, 2))))
