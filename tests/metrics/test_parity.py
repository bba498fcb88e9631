"""Our scores against plain implementations of the published definitions, on fixed codes: what docs/parity.md shows."""

import json
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest

from lddr.metrics.metric import metrics
from tests.metrics.parity import tables
from tests.metrics.parity.circles import CIRCLES, ours_on_circles
from tests.metrics.parity.rows import SLOW, SLOWEST, TABLE
from tests.metrics.parity.traps import TRAPS

ROOT = Path(__file__).parents[2]
TOOL = run_path(str(ROOT / "tools" / "parity.py"))
VALUES = json.loads((ROOT / "tests" / "metrics" / "parity" / "values.json").read_text())
KINDS = pytest.mark.parametrize("kind", tables.KINDS)


@KINDS
def test_our_scores_are_those_of_the_published_definitions(kind):
    for row in TABLE:
        stored = VALUES["tables"][row.title][kind]
        assert np.isclose(stored["ours"], stored["published"], rtol=0, atol=row.apart), row.title
        if row.metric not in SLOWEST and (kind == "noisy" or row.metric not in SLOW):
            found = row.ours(kind)
            assert np.isclose(found, stored["published"], rtol=0, atol=row.apart), row.title
            near = row.apart if "fast" in row.title else 1e-4  # its equally good splits depend on the processor
            assert np.isclose(found, stored["ours"], rtol=0, atol=near), row.title


@KINDS
def test_the_stored_values_are_those_of_the_plain_implementation(kind):
    for row in TABLE:
        if row.metric not in SLOW + SLOWEST:
            stored = VALUES["tables"][row.title][kind]["published"]
            assert np.isclose(row.plain(kind), stored, rtol=0, atol=1e-6), row.title


@pytest.mark.parametrize("name", CIRCLES)
def test_scores_that_hold_a_factor_are_those_of_the_published_definitions(name):
    title, _, apart = CIRCLES[name]
    for kind in tables.KINDS:
        stored = VALUES["circles"][title][kind]
        assert np.isclose(stored["ours"], stored["published"], rtol=0, atol=apart), kind
    found, share = ours_on_circles(name, "noisy", 0.1), VALUES["circles"][title]["noisy"]["published"]
    assert abs(found - share) < apart + 4 * np.sqrt(share * (1 - share) / 500)  # of 500 points


def test_the_tables_are_as_they_were_drawn():
    for kind, (codes, factors) in tables.kept().items():
        drawn = tables.drawn(kind)
        assert np.allclose(codes, drawn[0], atol=1e-6)
        assert np.array_equal(factors, drawn[1])


def test_the_page_is_up_to_date_and_has_every_metric():
    page = (ROOT / "docs" / "parity.md").read_text()
    assert TOOL["page"](VALUES) == page, "run: python tools/parity.py"
    for name in metrics:
        if metrics[name].function.__module__.startswith("lddr."):
            assert f"| `{name}` |" in page, name


def test_every_trap_does_something():
    for (what, *_), found in zip(TRAPS, VALUES["traps"], strict=True):
        assert found["published"] != found["other"], what
