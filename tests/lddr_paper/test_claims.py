import numpy as np
import pytest

from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import tables
from lddr.report.groups import collect
from lddr_paper import claims, judging
from lddr_paper.published import DATASETS, QUOTED, paper_mig, paper_results, paper_supervised
from tests.report.grouped import cell

pytestmark = pytest.mark.usefixtures("few_resamples")
OVER_PREVIOUS = "FactorDVAE over the previous best, MIG, mean over datasets"
SELECTION = "Selection over the median FactorDVAE, MIG, mean over datasets"
WORST = "Selection over the median FactorDVAE, MIG, worst dataset"


@pytest.fixture
def few_resamples(monkeypatch):
    monkeypatch.setattr(judging, "RESAMPLES", 100)


def paper_runs(make_run, datasets):
    """Return a run of each model with the paper's median; the D-VAE, with the smallest gap, has its selection's MIG."""
    medians = paper_results()["mig_median_unsupervised"]
    for dataset in datasets:
        values = {model: medians[model.replace("-", "_")][DATASETS[dataset]] for model in (*QUOTED, "factor-vae")}
        for model, value in values.items():
            if value is not None:
                make = {"mig": value / 100}
                yield make_run(model, dataset, 0, make)
        yield make_run("factor-dvae", dataset, 0, {"mig": medians["factor_dvae"][DATASETS[dataset]] / 100, "gap": 9.0})
        yield make_run("dvae", dataset, 0, {"mig": medians["selection"][DATASETS[dataset]] / 100, "gap": 1.0})


def test_the_papers_own_medians_give_its_claims(make_run):
    table = tables["claims"].make(collect(list(paper_runs(make_run, DATASETS))).groups)
    assert cell(table, SELECTION, "ours").value == pytest.approx(22.9, abs=0.05)
    assert cell(table, WORST, "ours").value == pytest.approx(-5.4, abs=0.05)
    assert [cell(table, label, "paper: text").value for label in (OVER_PREVIOUS, SELECTION, WORST)] == [17, 22, -6]
    assert "△" in cell(table, SELECTION, "ours").all_marks  # of one run each


def test_the_previous_best_is_the_best_median_of_a_gaussian_model(make_run):
    runs = list(paper_runs(make_run, ["dsprites", "color_dsprites", "cars3d"]))
    found = cell(tables["claims"].make(collect(runs).groups), OVER_PREVIOUS, "ours")
    assert found.value == pytest.approx(17.9, abs=0.05)


def test_a_dataset_without_a_gaussian_model_says_nothing_about_the_previous_best(make_run):
    runs = [make_run(model, "dsprites", 0, {"mig": 0.2, "gap": 1.0}) for model in ("dvae", "factor-dvae")]
    rows = [row[0] for row in tables["claims"].make(collect(runs).groups).rows]
    assert rows == [SELECTION, WORST]


def test_the_share_of_latent_spaces_on_circles_that_are_parallel_to_the_axes(make_run, monkeypatch):
    runs = [make_run(model, "circles", seed) for model in ("vae", "dvae") for seed in range(5)]
    angle = {"vae": 30, "dvae": 3}
    grid = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0), indexing="ij"), axis=-1)

    def rotated(run):
        turn = np.radians(angle[run.value("model")] + 2 * run.number("seed"))  # of the D-VAE 3, 5, 7, 9 and 11 degrees
        return grid @ np.array([(np.cos(turn), np.sin(turn)), (-np.sin(turn), np.cos(turn))])

    monkeypatch.setattr(claims, "space_of", rotated)
    table = tables["claims"].make(collect(runs).groups)
    label = "Latent spaces of the {} on Circles parallel to the axes"
    assert cell(table, label.format("D-VAE"), "ours").value == 80
    assert cell(table, label.format("VAE"), "ours").value == 0
    assert [row[2:] for row in table.rows] == [(None, None), ("more than 25", "supported")]
    assert any("within 10° of an axis" in note for note in table.notes)


def test_without_such_runs_there_is_nothing_to_say(make_run):
    with pytest.raises(UndefinedError, match="no runs of the FactorDVAE with a MIG"):
        tables["claims"].make(collect([make_run("dvae", "dsprites", 0, {"mig": 0.2})]).groups)


def test_the_claims_quote_the_papers_numbers():
    said = paper_results()["claims"]
    found = {name: str(claim.paper) for name, claim in claims.claims().items()}
    share = said["circles_axis_parallel_share_discrete_percent_more_than"]
    assert f"more than {share} %" in found["circles_parallel"]
    assert claims.claims()["circles_parallel"].cases["with bends"][0].limit == share
    won = said["unregularized_cases_won_by_discrete"]
    assert found["six_metrics"] == f"in {won['won']} of {won['of']} cases"
    gain, dvae = said["unregularized_mig_median_gain_percent"]["dsprites"], paper_mig("dvae", "dsprites").value
    assert found["mig_gain"] == f"+{gain} % ({dvae / 100:.3f} and {dvae / (100 + gain):.3f})"
    factor = [paper_mig(model, "dsprites").value / 100 for model in ("factor-dvae", "factor-vae")]
    assert found["factor"] == "{:.3f} and {:.3f}".format(*factor)
    assert f"+{said['selection_gain_over_median_percent_average']} %" in found["choice_by_gap"]
    plain, masked = (
        paper_supervised("dvae", loss, 1000, "dsprites").value / 100 for loss in ("cross-entropy", "masked")
    )
    assert found["masking"].endswith(f"{masked:.3f} and {plain:.3f}")
    assert found["some_labels"] == f"with 1,000 labels {plain:.3f}, without {dvae / 100:.3f}"
