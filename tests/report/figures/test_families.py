from pathlib import Path

import pytest

from lddr import train
from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import figures
from lddr.runs.index import list_runs
from lddr_paper.score_figures import COLUMNS, typical
from tests.report.grouped import grouped, invented


def run(name, mig, **settings):
    scores = {"elbo": -1.0} | ({} if mig is None else {"mig": mig})
    return invented(scores=scores, folder=Path(name), **settings)


def test_the_median_of_each_family_is_shown_and_not_the_best():
    discrete = [run(f"d{mig}", mig, model="dvae") for mig in (0.9, 0.1, 0.5)]
    gaussian = [run(f"g{mig}", mig, model="vae") for mig in (0.4, 0.3)]
    others = [run("f", 0.99, model="factor-dvae"), run("s", 0.99, model="dvae", supervision="masked")]
    _, chosen = typical(grouped([*discrete, *gaussian, *others]))
    assert [each.name for each in chosen] == ["d0.5", "g0.3"]


def test_the_elbo_decides_where_some_run_has_no_mig():
    discrete = [run("a", None, model="dvae"), run("b", 0.9, model="dvae"), run("c", 0.1, model="dvae")]
    _, chosen = typical(grouped([*discrete, run("v", 0.2, model="vae")]))
    assert chosen[0].name == "b"  # equal ELBOs: by name


def test_runs_of_older_versions_go_by_their_elbo_without_noise():
    older = [
        invented(model=model, scores={"elbo_noiseless": bound}, folder=Path(f"{model}{bound}"))
        for model, bound in (("dvae", -9.0), ("dvae", -5.0), ("dvae", -1.0), ("vae", -3.0))
    ]
    _, chosen = typical(grouped(older))
    assert [each.name for each in chosen] == ["dvae-5.0", "vae-3.0"]


def test_one_family_alone_is_not_put_beside_itself():
    with pytest.raises(UndefinedError, match="side by side"):
        typical(grouped([run("d", 0.5, model="dvae"), run("f", 0.5, model="factor-vae")]))


def test_both_blocks_are_drawn_with_their_models_above(tmp_path):
    for model in ("vae", "dvae"):
        train("circles", model, "quick", out=tmp_path, steps=1, width=1)
    drawn = figures["families"].make(grouped(list_runs(tmp_path)))
    columns = 2 * COLUMNS + 1
    first = drawn.figure.axes[:columns]
    assert [len(axes.images) for axes in first] == [*COLUMNS * [1], 0, *COLUMNS * [1]]
    texts = [text.get_text() for axes in first for text in axes.texts]
    assert texts[0].startswith("D-VAE")
    assert texts[1].startswith("VAE")
    assert "median" in drawn.caption
