import numpy as np
import pytest

from lddr.data.factors import Factor, FactorTable
from lddr.data.in_memory import ArrayDataset, as_images
from lddr.errors import UserError


@pytest.mark.parametrize("channels", [1, 3])
def test_channels_may_come_first_or_last(channels):
    last = np.random.default_rng(0).integers(256, size=(5, 16, 16, channels), dtype=np.uint8)
    first = last.transpose(0, 3, 1, 2)
    assert np.array_equal(as_images(first), as_images(last))
    assert np.array_equal(as_images(first, (16, 16, channels)), as_images(last))
    assert np.array_equal(ArrayDataset(first).images(range(5)), last)
    assert ArrayDataset(first).name == ArrayDataset(last).name


def test_the_name_depends_on_the_labels():
    images = np.zeros((3, 16, 16), np.uint8)
    factors = (Factor("a", 2),)
    tables = [FactorTable(factors, rows) for rows in ([[0], [1], [0]], [[0], [1], [-1]])]
    plain, unlabelled = ArrayDataset(images), ArrayDataset(images, FactorTable((), np.zeros((3, 0), int)))
    assert plain.name == unlabelled.name
    assert len({plain.name, *(ArrayDataset(images, table).name for table in tables)}) == 3


@pytest.mark.parametrize("shape", [(16, 16), (4, 16, 16, 2), (4, 2, 16, 16), (1, 4, 16, 16, 3)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(UserError, match="expected images of shape"):
        as_images(np.zeros(shape, np.uint8))
