from pathlib import Path

import numpy as np

from lddr.report.exhibits import figures
from lddr_paper.latent_figures import exemplary
from tests.report.grouped import grouped, invented


def test_the_report_shows_reconstructions_beside_traversals(hardly_trained):
    figure = figures["traversals"].make(grouped([hardly_trained["dvae"].run])).figure
    rows = np.array(figure.axes).reshape(2, 2 + 1 + 10)
    assert [axes.get_title() for axes in rows[0, :2]] == ["input", "output"]
    assert [len(axes.images) for axes in rows[1]] == [1, 1, 0, *10 * [1]]


def test_the_masked_dvae_with_the_lowest_risk_is_the_example():
    def run(name, scores, **settings):
        return invented(scores=scores, folder=Path(name), **settings)

    plain = [run("low", {"elbo": -9.0}), run("high", {"elbo": -3.0})]
    labelled = [run("labelled", {"validation_risk": 0.1}, supervision="cross-entropy")]
    masked = [run(f"masked-{risk}", {"validation_risk": risk}, supervision="masked") for risk in (3.0, 1.0, 2.0)]
    gaussian = [run("gaussian", {"elbo": -1.0}, model="vae")]
    other = [run("other", {"validation_risk": 0.0}, supervision="masked", model="factor-dvae")]
    assert exemplary(grouped(gaussian))[1].name == "gaussian"
    assert exemplary(grouped([*plain, *gaussian]))[1].name == "high"
    assert exemplary(grouped([*plain, *labelled]))[1].name == "labelled"
    assert exemplary(grouped([*plain, *labelled, *other]))[1].name == "other"
    assert exemplary(grouped([*plain, *labelled, *other, *masked]))[1].name == "masked-1.0"
