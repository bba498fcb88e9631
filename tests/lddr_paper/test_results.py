"""The results page is what the tables next to it give, and its numbers are computed as they should be."""

from pathlib import Path

import numpy as np
import pytest

from lddr.config import configure
from lddr.hardware import Machine
from lddr.metrics.evaluate import evaluate
from lddr.runs.folder import PRETRAINED
from lddr.runs.index import Run, list_runs, read_run
from lddr.runs.run import run
from lddr.selection.ranking import encode
from lddr.selection.selector import DEFAULT
from lddr.sweeps.study import read_study
from lddr.trained import Trained
from lddr_paper.claims import claims
from lddr_paper.judging import judge
from lddr_paper.results import page, selection, tables
from lddr_paper.results.__main__ import main
from tests.lddr_paper.test_judging import made_up

ROOT = Path(__file__).parents[2]


def test_the_verdicts_of_the_page_are_what_the_tables_give():
    text = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    for name in ("circles_parallel", "mig_gain", "gap", "some_labels", "training"):
        found = judge(claims()[name], tables.read_runs)
        assert f"| {found.claim.title} | {found.claim.paper} | {found.seen} | **{found.verdict}** |" in text
        assert "\n\n".join(found.details) in text


@pytest.mark.long
def test_the_page_is_what_the_tables_give(capsys):
    assert main(["check"]) == 0, capsys.readouterr().out + "\ngenerate it with: python -m lddr_paper.results"


@pytest.mark.long
def test_the_default_selector_is_the_winner():
    assert selection.winner() == DEFAULT


def test_regret_is_0_for_an_oracle_and_about_1_for_a_blind_choice():
    generator = np.random.default_rng(1)
    truth = generator.random(40)
    runs = [Run(Path(f"r{n}"), "finished", {"seed": n}, {"mig": value}) for n, value in enumerate(truth)]
    alike = -np.abs(truth[:, None] - truth)  # the median model is the most central one
    np.fill_diagonal(alike, np.nan)
    columns = {"oracle": truth, "blind": generator.random(40), "tie": 0 * truth}
    pool = selection.Pool("d", runs, columns, {"udr": alike})

    def choosing(selector, size):
        return selection.choosing(pool, selector, size, draws=1000)

    assert choosing("oracle", 10).regret == pytest.approx(0, abs=1e-12)
    assert choosing("oracle+oracle", 10).regret == pytest.approx(0, abs=1e-12)
    assert 0.5 < choosing("blind", 10).regret < 1.5
    assert choosing("tie", 40).gained == pytest.approx(truth.mean() - np.median(truth))
    assert abs(choosing("udr", 10).gained) < 0.05
    chosen = pool.preference("udr", np.array([[0, 1, 2]]))[0]
    assert chosen[0] == pytest.approx(np.median([alike[0, 1], alike[0, 2]]))  # only of those it may choose from


def test_among_seeds_of_one_type_others_do_not_count():
    truth = np.append(2.0, np.random.default_rng(2).random(16))
    models = ["dvae"] * 12 + ["factor-dvae"] * 5
    runs = [
        Run(Path(f"r{n}"), "finished", {"seed": n, "model": model}, {"mig": value})
        for n, (model, value) in enumerate(zip(models, truth, strict=True))
    ]
    biased = truth + 10 * (np.array(models) == "factor-dvae")  # right within a type, wrong between them
    pool = selection.Pool("d", runs, {"biased": biased, "wrong": -truth}, {})
    largest, other = selection.types_of(pool)
    assert largest.tolist() == list(range(12))
    assert other.tolist() == list(range(12, 17))
    assert selection.choosing(pool, "biased", 17).regret > 0.01
    assert selection.choosing(pool, "biased", 10, largest, draws=500).regret == pytest.approx(0, abs=1e-12)
    assert selection.regret_over_types(pool, "biased", [other]) == pytest.approx(0, abs=1e-12)
    worst = (truth[12:].max() - truth[12:].min()) / (truth[12:].max() - np.median(truth[12:]))
    assert selection.regret_over_types(pool, "wrong", [other]) == pytest.approx(worst)


def row_of(run, old):
    settings = {name: str(value) for name, value in run.settings.items() if value is not None}
    first = {name: settings.pop(name) for name in tables.FIRST}
    scores = {tables.SCORE + name: f"{value:.6g}" for name, value in run.scores.items()}
    return first | {tables.SETTING + name: value for name, value in settings.items()} | scores | {"name": run.name}


def test_a_row_gives_the_run_back(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    monkeypatch.setattr(tables, "run_row", row_of)
    assert not tables.read_runs("circles")
    settings = {"dataset": "dsprites", "model": "dvae", "seed": 3, "steps": 10, "clip": 0.5, "kernels": "4,4"}
    run = Run(Path("dsprites_dvae"), "finished", settings | {"supervision": None}, {"mig": 0.25, "dci.x": 1e-7})
    assert tables.add_runs("own", [run]) == 1
    (found,) = tables.read_runs("own")
    assert found.settings == settings | {"mean_bias": "false"} | found.settings  # defaults are filled in
    assert (found.scores, found.name) == (run.scores, run.name)
    better = Run(run.folder, "finished", run.settings, {"mig": 0.5})
    for _ in range(2):
        tables.add_runs("own", [better])
        assert [one.scores for one in tables.read_runs("own")] == [{"mig": 0.5}]
        assert [one.scores for one in tables.read_runs("own", file="replaced.csv")] == [run.scores]  # trained again
    tables.borrow_rows("other", ["own"], {run.name}, {"dci"})  # a score it does not have
    assert not tables.read_runs("other")
    tables.borrow_rows("other", ["own"], {run.name, "x"}, {"mig"})
    assert [one.scores for one in tables.read_runs("other")] == [{"mig": 0.5}]


@pytest.mark.long
def test_the_information_of_tied_latents_is_kept(tmp_path):
    small = {"width": 4, "steps": 100, "batch_size": 8, "num_latents": 7}
    config = configure("dvae", "rooms", preset="quick", supervision="masked", labels=20, **small)
    run(config, tmp_path, Machine("cpu", 1, quiet=True))
    (found,) = list_runs(tmp_path)
    entries = evaluate(found.files.dataset, Trained.load(found.folder), ("mig",), quiet=True)
    found.files.add_scores(entries)
    (found,) = list_runs(tmp_path)
    row, information = tables.run_row(found, {}), entries["mig"]["mutual_information"]
    names = found.files.dataset.space.names
    assert [float(row[f"score tied.{name}"]) for name in names] == pytest.approx(np.diag(information), rel=1e-5)
    assert [float(row[f"score free.{name}"]) for name in names] == pytest.approx(information[6], rel=1e-5)


SMALL = """
name = "small"
base = { dataset = "circles", preset = "quick", resolution = 16, width = 4, steps = 400, batch_size = 8 }
[[blocks]]
model = "dvae"
seed = 0
"""


@pytest.mark.long
def test_a_long_run_is_scored_at_the_steps_it_reached(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    study = tmp_path / "long" / "study.toml"
    study.parent.mkdir()
    study.write_text(SMALL)
    (config,) = read_study(study).configs

    def gathered(stop_at):
        def stop(step, values):
            if step == stop_at:
                raise KeyboardInterrupt

        machine = Machine("cpu", 1, quiet=True, checkpoint_seconds=0, on_log=stop)
        with pytest.raises(KeyboardInterrupt):
            run(config, tmp_path / "runs", machine)
        tables.add_long(list_runs(tmp_path / "runs"))
        return tables.read_long()["dvae", "truncated"]

    (first,) = gathered(200)
    before, later = gathered(320)
    assert int(before["step"]) == int(first["step"]) < int(later["step"]) < 400
    tables.add_long(list_runs(tmp_path / "runs"))  # nothing new
    assert len(tables.read_long()["dvae", "truncated"]) == 2
    assert 0 <= float(later["mig"]) <= 1
    assert 0 < float(later["information"]) <= float(later["kl"]) + 1  # logged of batches, not of the same images


def test_initialisers_are_compared_at_the_steps_that_both_reached(monkeypatch):
    def rows(weights, *reached):
        values = {"model": "dvae", "initialiser": weights, "reconstruction": "50", "kl": "7"}
        return [values | {"step": str(step), "mig": str(mig)} for step, mig in reached]

    found = {("dvae", "truncated"): rows("truncated", (100, 0.3), (200, 0.1), (300, 0.7))}
    found[("dvae", "uniform")] = rows("uniform", (110, 0.2), (210, 0.15))
    monkeypatch.setattr(page, "read_long", lambda: found)
    _, _, first, last = page.initialisers_table().splitlines()
    assert first.startswith("| D-VAE | 100 and 110 | 0.300 | 0.200 | 0.100 |")
    assert last.startswith("| D-VAE | 200 and 210 | 0.100 | 0.150 | 0.050 |")
    assert last.endswith("| 57.0 and 57.0 |")


@pytest.mark.long
def test_codes_are_kept_and_given_back(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    found = read_run(PRETRAINED / "circles-dvae")
    tables.keep_codes([found])
    kept, fresh = tables.read_codes([found])[found.name], encode(found)
    assert np.allclose(kept.codes, fresh.codes, atol=1e-3)
    assert np.array_equal(kept.categories, fresh.categories)
    assert np.allclose(kept.confidence, fresh.confidence)
    assert np.array_equal(kept.active, fresh.active)
    monkeypatch.setattr(tables, "encode", None)  # it is not encoded again
    tables.keep_codes([found])
    assert not tables.read_codes([read_run(PRETRAINED / "rooms-dvae")])


def test_the_entropy_of_categories_is_summed_over_latents(tmp_path):
    categories = np.stack([np.full(8, 5), np.arange(8) % 4], axis=1)  # one for all images, and four alike
    np.savez(tmp_path / "one.npz", categories=categories)
    assert tables.category_entropy(tmp_path / "one.npz") == pytest.approx(np.log(4))


def test_a_type_wins_by_half_of_the_metrics_on_every_dataset(monkeypatch):
    models = ("vae", "dvae", "qlae")

    def found(mig):
        runs = [
            run
            for dataset in ("dsprites", "rooms")
            for model in models
            for run in made_up(
                dataset,
                {"model": model},
                {"mig": mig.get((dataset, model), 0.1), "dci": 0.3 if model == "vae" else 0.2},
            )
        ]
        monkeypatch.setattr(page, "read_runs", lambda study: runs)
        return page.discreteness()

    shared = found({("dsprites", "qlae"): 0.2, ("rooms", "dvae"): 0.2})
    assert shared["discrete_winner"] == "VAE wins"  # by DCI, one metric of two, on both
    assert "- MIG: QLAE before VAE by +0.100" in shared["discrete_datasets"]
    assert "| 4 cases | mean rank |" in shared["discrete_ranks"]
    monkeypatch.setattr(page, "METRICS", ("mig",))
    assert found({("dsprites", "qlae"): 0.2, ("rooms", "dvae"): 0.2})["discrete_winner"] == "no type wins"
    both = found({("dsprites", "qlae"): 0.2, ("rooms", "qlae"): 0.2})
    assert both["discrete_winner"] == "QLAE wins"
    assert "| QLAE | 1.0 | 2 |" in both["discrete_ranks"]


def labelled_rows(**studies):
    return lambda *names: [run for name in names for run in studies.get(name, [])]


def lines(judgement):
    return "\n".join(judgement.details).splitlines()


def test_labels_are_judged_against_the_better_rival():
    medians = {"vae": {"bce": 0.1, "l2": 0.3}, "dvae": {"cross-entropy": 0.15, "masked": 0.2}}
    runs = [
        run
        for model, losses in medians.items()
        for loss, value in losses.items()
        for run in made_up(
            "dsprites", {"model": model, "supervision": loss, "labels": 100}, {"mig": value, "dci": 1 - value}
        )
    ]
    rows = labelled_rows(labels=runs, families=made_up("dsprites", {"model": "dvae"}, {"mig": 0.15}))
    first = judge(claims()["labels"], rows)
    assert first.verdict == "contradicted"
    assert first.seen.startswith("100 labels: median MIG −0.100")
    shares = {line.split(" | ")[0]: line.split(" | ")[1].strip("| ") for line in lines(first) if " | " in line}
    assert shares["| VAE, L2"] == shares["| VAE, BCE"] == "50"  # MIG the one, DCI the other
    assert judge(claims()["masking"], rows).verdict == "supported"
    assert judge(claims()["some_labels"], rows).verdict == "inconclusive"
    assert not any("tied" in line for line in lines(first))  # these runs have no such scores
    for one in runs:
        one.scores.update({"tied.x": one.scores["mig"], "free.x": 2 * one.scores["mig"]})
    assert "| D-VAE, masked | 100 | 0.20 and 0.40 |" in lines(judge(claims()["labels"], rows))
    assert judge(claims()["labels"], labelled_rows()) is None


def test_an_obstacle_to_labels_is_confirmed_if_the_mig_is_larger_without_it():
    masked = {"model": "dvae", "supervision": "masked", "labels": 1000}
    usual = made_up("dsprites", masked, {"mig": 0.2, "tied.x": 2.0, "free.x": 1.0})
    usual += made_up("dsprites", masked | {"model": "vae", "supervision": "bce"}, {"mig": 0.1})
    usual += made_up("dsprites", masked | {"model": "vae", "supervision": "l2"}, {"mig": 0.1})
    changed = made_up("dsprites", masked | {"mean_bias": "true"}, {"mig": 0.3, "tied.x": 1.9, "free.x": 0.3})
    assert "obstacle" not in str(judge(claims()["labels"], labelled_rows(labels=usual)).details)
    judgement = judge(claims()["labels"], labelled_rows(labels=usual, ties=changed))
    (found,) = [line for line in lines(judgement) if line.startswith("| mean-brightness bias")]
    assert found.startswith("| mean-brightness bias | 0.302 | +0.100 ")
    assert found.endswith("| 5 | supported | 1.90 and 0.30 |")
