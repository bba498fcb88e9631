import pytest

from lddr.metrics.metric import UndefinedError
from lddr.report.figures.figure import figures
from tests.report.grouped import gapped_runs, grouped


def test_all_discrete_models_together_need_two_of_them():
    with pytest.raises(UndefinedError, match="no runs of two discrete models"):
        figures["selectors-combined"].make(grouped(gapped_runs()))
    drawn = figures["selectors-combined"].make(grouped([*gapped_runs(), *gapped_runs(model="factor-dvae")]))
    assert drawn.figure.axes[0].get_title() == "Circles (8 runs)"
    assert drawn.caption.endswith("Models: D-VAE, FactorDVAE, ranked together.")
