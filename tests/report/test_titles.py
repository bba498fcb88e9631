from pathlib import Path

import pytest

from lddr.data.dataset import datasets
from lddr.report import style as titles
from lddr.runs.index import Run


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ("mpi3d_real", "MPI3D (real)"),
        ("dsprites", "dSprites"),
        ("somewhere/my images", "my images"),
        ("photos.npz", "photos"),
    ],
)
def test_datasets_have_names_people_know(given, title):
    assert titles.dataset_title(given) == title


def test_no_two_datasets_have_one_name():
    assert len({titles.dataset_title(name) for name in datasets}) == len(datasets)


def test_models_and_metrics_have_names_people_know():
    def run(**settings):
        return Run(Path("run"), "finished", settings, {})

    assert titles.method_title(run(model="dvae")) == "D-VAE"
    assert titles.method_title(run(model="vae", supervision="l2")) == "VAE, L2"
    assert titles.model_title("mine") == "mine"
    assert titles.metric_title("gap") == "Gap_ST"
