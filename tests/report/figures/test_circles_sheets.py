import numpy as np
import pytest

from lddr.report.exhibits import figures
from lddr_paper import latent_figures as circles_sheets
from tests.report.grouped import grouped, invented


@pytest.fixture
def flat(monkeypatch):
    """Models are not needed: every latent space is the same grid."""
    grid = np.stack(np.meshgrid(np.arange(14.0), np.arange(14.0), indexing="ij"), axis=-1)
    monkeypatch.setattr(circles_sheets, "space_of", lambda run: grid)


def test_the_sheet_shows_all_runs_best_first(flat):
    runs = [invented("vae", seed=seed, scores={"mig": seed / 100, "dci": 0.5}) for seed in range(13)]
    drawn = figures["circles-vae"].make(grouped(runs))
    shown = [axes for axes in drawn.figure.axes if axes.axison]
    assert [axes.get_title() for axes in shown] == [f"MIG {mig} · DCI 50" for mig in range(12, -1, -1)]
    assert drawn.caption.startswith("The latent spaces of all 13 runs of the VAE, with MIG and DCI")
    assert figures["circles-dvae"].title == "All latent spaces of the D-VAE on Circles"
