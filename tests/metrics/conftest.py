import pytest

from lddr.config import configure
from lddr.runs.run import Machine, run

SETTINGS = {"resolution": 16, "width": 4, "steps": 10, "seed": 0, "reconstruction_weight": 1.0}


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory):
    """Trains a tiny model on circles, once for all tests that ask for it."""
    out = tmp_path_factory.mktemp("runs")

    def folder(model, **settings):
        machine = Machine("cpu", 1, quiet=True)
        return run(configure(model, "circles", "quick", **SETTINGS | settings), out, machine)

    return folder
