import numpy as np

from lddr.report.exhibits import figures
from tests.report.grouped import grouped, runs_of


def test_datasets_are_rows_and_metrics_columns(compared_runs):
    more = [*compared_runs, *runs_of("vae", "rooms", "sap", (0.1, 0.2)), *runs_of("dvae", "rooms", "sap", (0.5, 0.6))]
    drawn = figures["metrics"].make(grouped(more))
    figure = drawn.figure
    shown = np.array([axes.axison for axes in figure.axes]).reshape(2, 2)
    assert shown.tolist() == [[True, False], [True, True]]  # circles has no SAP
    assert [axes.get_ylabel() for axes in np.reshape(figure.axes, (2, 2))[:, 0]] == ["Circles", "rooms"]
    assert [axes.get_title() for axes in figure.axes] == ["MIG", "", "", "SAP"]
    assert figure.axes[3].get_xlabel() == "+267 %△"
    assert figure.legends[0].get_title().get_text().startswith("D-VAE better in 2 of 3 cases△")
    assert drawn.caption.endswith("the discrete model is better in 2 of 3 cases△.")
