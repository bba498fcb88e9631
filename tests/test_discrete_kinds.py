import numpy as np
import pytest

from lddr.report.style import rendered
from tools.discrete_kinds import KINDS, discrete_kinds, seen


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_what_is_drawn_is_what_the_families_do(kind):
    found = seen(kind)
    is_rounded = kind.title != "categorical"
    assert np.isin(found.tested, found.values).all() == is_rounded
    assert np.isin(found.trained, found.values).all() == (kind.title not in ("categorical", "codebook"))
    assert (np.diff(found.tested) >= -1e-6).all()
    assert (np.diff(found.path) > -1e-6).all()
    assert len(np.unique(found.tested)) == len(found.values) or not is_rounded


@pytest.mark.long
def test_the_picture_is_the_same_every_time():
    assert rendered(discrete_kinds(), dpi=50) == rendered(discrete_kinds(), dpi=50)
