import os

import pytest
from hypothesis import settings

from tests.browser import Visit

os.environ["OMP_NUM_THREADS"] = "1"  # tests run side by side: more threads would only wait for each other
settings.register_profile("patient", deadline=None)  # a busy machine is no mistake
settings.load_profile("patient")


@pytest.fixture(scope="session")
def chromium():
    """The browser, started once."""
    from lddr.bench.explore import browser

    with browser() as started:
        yield started


@pytest.fixture
def visit(chromium):
    """A function that opens a page from disk; see tests/browser.py."""
    visits = []

    def open_page(path, **options):
        visits.append(Visit(chromium, path, **options))
        return visits[-1]

    yield open_page
    for opened in visits:
        opened.context.close()
