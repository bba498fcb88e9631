import pytest

from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import figures
from tests.report.grouped import gapped_runs, grouped


@pytest.mark.parametrize("other", [None, "tc-dvae"])
def test_both_models_of_the_papers_selection_are_needed(other):
    runs = [*gapped_runs(), *(gapped_runs(model=other) if other else [])]
    with pytest.raises(UndefinedError, match="no runs of D-VAE and FactorDVAE on one dataset"):
        figures["selectors-combined"].make(grouped(runs))


def test_no_other_discrete_model_is_ranked_with_them():
    runs = [*gapped_runs(), *gapped_runs(model="factor-dvae"), *gapped_runs(model="tc-dvae"), *gapped_runs("rooms")]
    drawn = figures["selectors-combined"].make(grouped(runs))
    assert [axes.get_title() for axes in drawn.figure.axes[:-1]] == ["Circles (8 runs)"]
    assert drawn.caption.endswith("Models: D-VAE and FactorDVAE, ranked together.")
