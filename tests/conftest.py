import os
from functools import partial

import pytest
from hypothesis import settings

from tests.browser import Visit

os.environ.update(RAY_worker_niceness="0")  # else other tests leave Ray's workers no time
os.environ["OMP_NUM_THREADS"] = "1"  # tests run side by side: more threads would only wait for each other
settings.register_profile("patient", deadline=None, max_examples=40)  # a busy machine is no mistake
settings.load_profile("patient")

TOGETHER = {  # files whose fixtures take long: in one process, where they are made once
    "test_blocks", "test_cars3d", "test_dsprites", "test_estimator", "test_errors", "test_sharing", "test_package",
    "test_pages", "test_pipe", "test_poisoned", "test_seeds", "test_select", "test_site", "test_smallnorb",
    "test_study", "test_trackers",
}  # fmt: skip


@pytest.hookimpl(tryfirst=True)  # before groups are read
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.stem in TOGETHER:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="module")
def short_evaluation():
    """Evaluate trained models on one batch, where their scores do not matter."""
    from lddr.metrics.elbo import bounds

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lddr.runs.run.bounds", partial(bounds, batches=1))
        yield


@pytest.fixture(scope="session")
def chromium():
    """The browser, started once."""
    from benchmarks.explore import browser

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
