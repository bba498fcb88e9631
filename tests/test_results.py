"""The results page is what the tables beside it give, and its numbers are worked out as they should be."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm, spearmanr

from lddr.config import configure
from lddr.metrics.evaluate import evaluate
from lddr.runs import pretrained
from lddr.runs.index import list_runs, read_run
from lddr.runs.machine import Machine
from lddr.runs.run import run
from lddr.selection.ranking import encode
from lddr.selection.selector import DEFAULT
from lddr.sweeps.study import read_study
from lddr.trained import Trained

ROOT = Path(__file__).parents[1]
TOOL = ROOT / "tools" / "results"


@pytest.fixture
def tool(monkeypatch):
    """The tool's modules, which have common names, for one test."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(TOOL))
    import claims
    import claims_labels
    import codes
    import estimates
    import kinds
    import long
    import selection
    import table

    modules = (claims, claims_labels, codes, estimates, kinds, long, selection, table)
    yield {module.__name__: module for module in modules}
    for name in set(sys.modules) - known:
        if getattr(sys.modules[name], "__file__", None) and str(TOOL) in str(sys.modules[name].__file__):
            del sys.modules[name]


def test_the_page_is_what_the_tables_give():
    done = subprocess.run([sys.executable, str(TOOL), "check"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr + "\nmake it anew with: python tools/results"


def test_a_verdict_needs_the_whole_interval_and_enough_runs(tool):
    estimate = tool["estimates"].Estimate
    assert estimate(1, 0.5, 2, 9).verdict() == "shown"
    assert estimate(1, -0.5, 2, 9).verdict() == "not shown"
    assert estimate(-1, -2, -0.5, 9).verdict() == "the opposite"
    assert estimate(1, 0.5, 2, 4).verdict() == "too few runs"
    assert estimate(30, 26, 40, 50).verdict(25) == "shown"


@pytest.mark.long
def test_the_interval_of_a_difference_covers_it_about_as_often_as_it_says(tool, monkeypatch):
    monkeypatch.setattr(tool["estimates"], "RESAMPLES", 400)
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        new, old = generator.normal(1, 1, 40), generator.normal(0, 1, 40)
        found = tool["estimates"].resampled(tool["estimates"].above, new, old)
        covered += found.low <= 1 <= found.high
    assert 0.88 <= covered / 200 <= 1.0


def test_the_interval_of_a_share_is_wilsons(tool):
    found = tool["estimates"].share(13, 50)
    z = norm.ppf(0.975)
    for limit in (found.low / 100, found.high / 100):  # where a test of that share just fails to be rejected
        assert abs(0.26 - limit) == pytest.approx(z * np.sqrt(limit * (1 - limit) / 50), rel=1e-5)
    assert tool["estimates"].share(0, 12).low == 0.0


@pytest.mark.long
def test_regret_is_0_for_an_oracle_and_about_1_for_a_blind_choice(tool):
    module, table = tool["selection"], tool["table"]
    generator = np.random.default_rng(1)
    truth = generator.random(40)
    runs = [table.Run(Path(f"r{n}"), "finished", {"seed": n}, {"mig": value}) for n, value in enumerate(truth)]
    alike = -np.abs(truth[:, None] - truth)  # the median model is the most central one
    np.fill_diagonal(alike, np.nan)
    pool = module.Pool("d", runs, {"oracle": truth, "blind": generator.random(40), "tie": 0 * truth}, {"udr": alike})
    assert module.choosing(pool, "oracle", 10).regret == pytest.approx(0, abs=1e-12)
    assert module.choosing(pool, "oracle+oracle", 10).regret == pytest.approx(0, abs=1e-12)
    assert 0.5 < module.choosing(pool, "blind", 10).regret < 1.5
    assert module.choosing(pool, "tie", 40).gained == pytest.approx(truth.mean() - np.median(truth))
    assert abs(module.choosing(pool, "udr", 10).gained) < 0.05
    chosen = pool.preference("udr", np.array([[0, 1, 2]]))[0]
    assert chosen[0] == pytest.approx(np.median([alike[0, 1], alike[0, 2]]))  # of those it may choose from alone


@pytest.mark.long
def test_among_seeds_of_one_kind_others_do_not_count(tool):
    module, table = tool["selection"], tool["table"]
    truth = np.append(2.0, np.random.default_rng(2).random(16))
    kinds = ["dvae"] * 12 + ["factor-dvae"] * 5
    runs = [
        table.Run(Path(f"r{n}"), "finished", {"seed": n, "model": kind}, {"mig": value})
        for n, (kind, value) in enumerate(zip(kinds, truth, strict=True))
    ]
    biased = truth + 10 * (np.array(kinds) == "factor-dvae")  # right within a kind, wrong between them
    pool = module.Pool("d", runs, {"biased": biased, "wrong": -truth}, {})
    largest, other = module._kinds(pool)
    assert largest.tolist() == list(range(12))
    assert other.tolist() == list(range(12, 17))
    assert module.choosing(pool, "biased", 17).regret > 0.01
    assert module.choosing(pool, "biased", 10, largest).regret == pytest.approx(0, abs=1e-12)
    assert module._regret_over_kinds(pool, "biased", [other]) == pytest.approx(0, abs=1e-12)
    worst = (truth[12:].max() - truth[12:].min()) / (truth[12:].max() - np.median(truth[12:]))
    assert module._regret_over_kinds(pool, "wrong", [other]) == pytest.approx(worst)


def test_the_default_is_the_winner_once_there_is_one(tool):
    assert (tool["selection"].winner() or "gap") == DEFAULT


@pytest.mark.long
def test_a_row_gives_the_run_back(tool, tmp_path, monkeypatch):
    table = tool["table"]
    monkeypatch.setattr(table, "RESULTS", tmp_path)
    runs = table.read("circles")
    assert not runs
    settings = {"dataset": "dsprites", "model": "dvae", "seed": 3, "steps": 10, "clip": 0.5, "kernels": "4,4"}
    run = table.Run(Path("dsprites_dvae"), "finished", settings | {"supervision": None}, {"mig": 0.25, "dci.x": 1e-7})
    monkeypatch.setattr(table, "_row", lambda run, old: row(table, run))
    assert table.keep("own", [run]) == 1
    (found,) = table.read("own")
    assert found.settings == settings | {"mean_bias": "false"} | found.settings  # what it lacks is at its default
    assert found.scores == run.scores
    assert found.name == run.name
    better = table.Run(run.folder, "finished", run.settings, {"mig": 0.5})
    table.keep("own", [better])
    assert [one.scores for one in table.read("own")] == [{"mig": 0.5}]
    assert [one.scores for one in table.replaced("own")] == [run.scores]  # of a run that was trained again
    table.keep("own", [better])
    assert len(table.replaced("own")) == 1
    table.borrow("other", ["own"], {run.name}, {"dci"})  # a score it has not
    assert not table.read("other")
    table.borrow("other", ["own"], {run.name, "x"}, {"mig"})
    assert [one.scores for one in table.read("other")] == [{"mig": 0.5}]


@pytest.mark.long
def test_what_tied_latents_know_is_kept_beside_what_others_do(tool, tmp_path):
    small = {"width": 4, "steps": 100, "batch_size": 8, "num_latents": 7}
    config = configure("dvae", "rooms", preset="quick", supervision="masked", labels=20, **small)
    run(config, tmp_path, Machine("cpu", 1, quiet=True))
    (found,) = list_runs(tmp_path)
    entries = evaluate(found.files.dataset, Trained.load(found.folder), ("mig",), quiet=True)
    found.files.add_scores(entries)
    (found,) = list_runs(tmp_path)
    row, information = tool["table"]._row(found, {}), entries["mig"]["mutual_information"]
    names = found.files.dataset.space.names
    assert [float(row[f"score tied.{name}"]) for name in names] == pytest.approx(np.diag(information), rel=1e-5)
    assert [float(row[f"score free.{name}"]) for name in names] == pytest.approx(information[6], rel=1e-5)


@pytest.mark.long
def test_ranks_within_groups_are_those_of_each_by_itself(tool):
    estimates, generator = tool["estimates"], np.random.default_rng(0)
    one = generator.normal(size=(12, 2))
    assert estimates.ranks_within([one]).value == pytest.approx(spearmanr(*one.T).statistic)
    low = np.stack([np.arange(6.0), np.arange(6.0) + 10], axis=1)  # rises, above the other group
    high = np.stack([np.arange(6.0) + 100, np.arange(6.0)], axis=1)
    assert spearmanr(*np.concatenate([low, high]).T).statistic < 0
    found = estimates.ranks_within([low, high])
    assert (found.value, found.high, found.runs) == (pytest.approx(1), pytest.approx(1), 12)
    mirrored = [group * [1, -1] for group in (one, low)]
    assert estimates.ranks_within(mirrored).value == pytest.approx(-estimates.ranks_within([one, low]).value)


SMALL = """
name = "small"
base = { dataset = "circles", preset = "quick", resolution = 16, width = 4, steps = 400, batch_size = 8 }
[[blocks]]
model = "dvae"
seed = 0
"""


@pytest.mark.long
def test_a_run_is_scored_at_the_steps_it_reached(tool, tmp_path, monkeypatch):
    study = tmp_path / "study.toml"
    study.write_text(SMALL)
    monkeypatch.setattr(tool["long"], "STUDY", study)
    monkeypatch.setattr(tool["long"], "FILE", tmp_path / "steps.csv")
    (config,) = read_study(study).configs

    def gathered(stop_at):
        def stop(step, values):
            if step == stop_at:
                raise KeyboardInterrupt

        machine = Machine("cpu", 1, quiet=True, checkpoint_seconds=0, on_log=stop)
        with pytest.raises(KeyboardInterrupt):
            run(config, tmp_path / "runs", machine)
        tool["long"].gather(list_runs(tmp_path / "runs"))
        return [one.step for one in tool["long"].read()]

    assert not tool["long"].told()
    (first,) = gathered(200)
    before, later = gathered(320)
    assert before == first < later < 400
    tool["long"].gather(list_runs(tmp_path / "runs"))  # nothing new
    last = tool["long"].kinds()["dvae", "truncated"][-1]
    assert (len(tool["long"].read()), last.step) == (2, later)
    assert 0 <= last.score("mig") <= 1
    assert 0 < last.score("information") <= last.score("kl") + 1  # logged of batches, not of the same images
    assert "circles" not in tool["long"].told()[1]
    assert f"| D-VAE | truncated | {later} |" in tool["long"].told()[1]


@pytest.mark.long
def test_beginnings_are_compared_at_the_steps_that_both_reached(tool, tmp_path, monkeypatch):
    long = tool["long"]
    monkeypatch.setattr(long, "FILE", tmp_path / "steps.csv")
    reached = [("truncated", 100, 0.3), ("truncated", 200, 0.1), ("truncated", 300, 0.7)]
    reached += [("uniform", 110, 0.2), ("uniform", 210, 0.15)]
    rows = [["dvae", weights, "0", str(step), str(mig), "1", "50", "7", "", weights] for weights, step, mig in reached]
    tool["table"].write(long.FILE, long.COLUMNS, rows)
    lines = long.told()[-1].splitlines()
    assert lines[2].startswith("| D-VAE | 100 and 110 | 0.300 | 0.200 | 0.100 |")
    assert lines[3].startswith("| D-VAE | 200 and 210 | 0.100 | 0.150 | 0.050 |")
    assert lines[3].endswith("| 57.0 and 57.0 |")
    assert len(lines) == 4


@pytest.mark.long
def test_codes_are_kept_and_given_back(tool, tmp_path, monkeypatch):
    monkeypatch.setattr(tool["codes"], "FOLDER", tmp_path / "codes")
    found = read_run(pretrained.HOME / "circles-dvae")
    tool["codes"].keep([found])
    kept, fresh = tool["codes"].kept([found])[found.name], encode(found)
    assert np.allclose(kept.codes, fresh.codes, atol=1e-3)
    assert np.array_equal(kept.categories, fresh.categories)
    assert np.allclose(kept.confidence, fresh.confidence)
    assert np.array_equal(kept.active, fresh.active)
    monkeypatch.setattr(tool["codes"], "encode", None)  # it is not asked again
    tool["codes"].keep([found])
    assert not tool["codes"].kept([read_run(pretrained.HOME / "rooms-dvae")])


@pytest.mark.long
def test_evenness_is_the_entropy_of_categories_over_images(tool, tmp_path, monkeypatch):
    codes, run = tool["codes"], tool["table"].Run(Path("one"), "finished", {}, {})
    monkeypatch.setattr(codes, "FOLDER", tmp_path)
    assert codes.evenness([run]) == []  # its codes have not been kept
    categories = np.stack([np.full(8, 5), np.arange(8) % 4], axis=1)  # one for all images, and four alike
    np.savez(tmp_path / "one.npz", codes=categories / 8, categories=categories, confidence=np.ones(2))
    assert codes.evenness([run]) == pytest.approx([np.log(4)])


@pytest.mark.long
def test_kinds_of_runs_have_a_verdict_each(tool):
    claim = tool["claims"].Claim("t", "p", "little", "not shown", ["| a |"])
    other = tool["claims"].Claim("t", "p", "much", "shown", [])
    found = tool["claims"].beside({"as usual": claim, "else": other})
    assert (found.seen, found.verdict) == ("as usual little; else much", "as usual: not shown; else: shown")
    assert found.details == ["**as usual**", "", "| a |"]


def made_up(table, dataset, settings, scores):
    """Five runs with these scores, a thousandth apart."""
    return [
        table.Run(
            Path(f"{dataset}-{settings}-{seed}"),
            "finished",
            {"dataset": dataset, "supervision": None} | settings,
            {name: value + seed / 1000 for name, value in scores.items()},
        )
        for seed in range(5)
    ]


@pytest.mark.long
def test_a_kind_wins_by_half_of_the_metrics_on_every_dataset(tool, monkeypatch):
    latents = {"vae": "gaussian", "dvae": "categorical", "qlae": "quantised"}

    def told(mig):
        runs = [
            run
            for dataset in ("dsprites", "rooms")
            for model, latent in latents.items()
            for run in made_up(
                tool["table"],
                dataset,
                {"model": model, "latent": latent},
                {"mig": mig[dataset, model], "dci": 0.3 if model == "vae" else 0.2},
            )
        ]
        monkeypatch.setattr(tool["kinds"], "read", lambda study: runs)
        return "\n".join(tool["kinds"].told())

    even = {(dataset, model): 0.1 for dataset in ("dsprites", "rooms") for model in latents}
    shared = told(even | {("dsprites", "qlae"): 0.2, ("rooms", "dvae"): 0.2})
    assert "VAE: **wins as a kind**" in shared  # by DCI, one metric of two, on both
    assert "- MIG: QLAE before VAE by +0.100" in shared or "- MIG: QLAE before D-VAE by +0.100" in shared
    assert "| 4 cases | mean place |" in shared
    monkeypatch.setattr(tool["kinds"], "METRICS", ("mig",))
    assert "**No kind wins.**" in told(even | {("dsprites", "qlae"): 0.2, ("rooms", "dvae"): 0.2})
    both = told(even | {("dsprites", "qlae"): 0.2, ("rooms", "qlae"): 0.2})
    assert "QLAE: **wins as a kind**" in both
    assert "| QLAE | 1.0 | 2 |" in both


@pytest.mark.long
def test_labels_are_judged_against_the_better_rival(tool, monkeypatch):
    labels, table = tool["claims_labels"], tool["table"]
    medians = {"vae": {"bce": 0.1, "l2": 0.3}, "dvae": {"cross-entropy": 0.15, "masked": 0.2}}
    runs = [
        run
        for model, losses in medians.items()
        for loss, value in losses.items()
        for run in made_up(
            table, "dsprites", {"model": model, "supervision": loss, "labels": 100}, {"mig": value, "dci": 1 - value}
        )
    ]
    none = made_up(table, "dsprites", {"model": "dvae"}, {"mig": 0.15})
    monkeypatch.setattr(labels, "read", lambda study: runs if study == "labels" else none)
    first = labels.labels()
    assert first.verdict == "the opposite"
    assert first.seen.startswith("100 labels: median MIG −0.100")
    shares = {line.split(" | ")[0]: line.split(" | ")[1].strip("| ") for line in first.details if " | " in line}
    assert shares["| VAE, L2"] == shares["| VAE, BCE"] == "50"  # MIG the one, DCI the other
    assert labels.masking().verdict == "shown"
    assert labels.some_labels().verdict == "not shown"
    assert not any("tied" in line for line in first.details)  # nothing is known of it
    for one in runs:
        one.scores.update({"tied.x": one.scores["mig"], "free.x": 2 * one.scores["mig"]})
    assert "| D-VAE, masked | 100 | 0.20 and 0.40 |" in labels.labels().details
    monkeypatch.setattr(labels, "read", lambda study: [])
    with pytest.raises(tool["claims"].NotYetError):
        labels.labels()


@pytest.mark.long
def test_what_was_in_the_way_of_labels_makes_the_mig_larger_when_taken_away(tool, monkeypatch):
    labels, table = tool["claims_labels"], tool["table"]
    masked = {"model": "dvae", "supervision": "masked", "labels": 1000}
    usual = made_up(table, "dsprites", masked, {"mig": 0.2, "tied.x": 2.0, "free.x": 1.0})
    changed = made_up(table, "dsprites", masked | {"mean_bias": "true"}, {"mig": 0.3, "tied.x": 1.9, "free.x": 0.3})
    monkeypatch.setattr(labels, "read", lambda study: usual if study == "labels" else [])
    assert not any("taken away" in line for line in labels._repeated())  # no such runs yet
    monkeypatch.setattr(labels, "read", lambda study: usual if study == "labels" else changed)
    (found,) = [line for line in labels._repeated() if line.startswith("| from the mean brightness")]
    assert found.startswith("| from the mean brightness | 0.302 | +0.100 ")
    assert found.endswith("| 5 | shown | 1.90 and 0.30 |")


def row(table, run):
    settings = {name: str(value) for name, value in run.settings.items() if value is not None}
    first = {name: settings.pop(name) for name in table.FIRST}
    scores = {table.SCORE + name: f"{value:.6g}" for name, value in run.scores.items()}
    return first | {table.SETTING + name: value for name, value in settings.items()} | scores | {"name": run.name}
