"""The results pages are what the tables next to them give, and their numbers are computed as they should be."""

import csv
import re
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
from lddr.statistics import bootstrap_interval
from lddr.sweeps.study import read_study
from lddr.trained import Trained
from lddr_paper.claims import claims
from lddr_paper.judging import judge
from lddr_paper.published import paper_results
from lddr_paper.results import __main__ as command
from lddr_paper.results import against_paper, discrete, explanations, figures, pages, selection, tables
from tests.lddr_paper.test_judging import made_up

ROOT = Path(__file__).parents[2]


def test_the_findings_of_the_pages_are_what_the_tables_give():
    page, summary = ((ROOT / "results" / name).read_text(encoding="utf-8") for name in ("claims.md", "README.md"))
    for name in ("circles_parallel", "mig_gain", "labels", "some_labels"):
        found = judge(claims()[name], tables.read_runs)
        assert f"\n## {pages.finding(found)}\n" in page
        assert pages.claims_table([found]).splitlines()[-1] in summary


@pytest.mark.long
def test_the_pages_are_what_the_tables_give(capsys):
    assert command.main(["check"]) == 0, capsys.readouterr().out + "\ngenerate them with: python -m lddr_paper.results"


def test_every_picture_of_the_pages_is_there_and_says_what_it_shows():
    for path in pages.PAGES:
        text = (ROOT / "results" / path).read_text(encoding="utf-8")
        for shown, file in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", text):
            assert ((ROOT / "results" / path).parent / file).exists(), f"{path}: {file}"
            assert len(shown) > 20


def test_a_finding_that_was_written_for_another_verdict_is_refused():
    found = judge(claims()["circles_scores"], lambda *studies: [])
    assert found is None
    runs = made_up("circles", {"model": "vae"}, {"mig": 0.3}) + made_up("circles", {"model": "dvae"}, {"mig": 0.1})
    with pytest.raises(ValueError, match="reword the finding of 'On Circles"):
        pages.finding(judge(claims()["circles_scores"], lambda *studies: runs))


def test_an_inconclusive_verdict_names_the_smallest_effect_that_could_be_seen():
    claim = claims()["circles_scores"]
    runs = made_up("circles", {"model": "vae"}, {"mig": 0.1}) + made_up("circles", {"model": "dvae"}, {"mig": 0.1})
    found = judge(claim, lambda *studies: runs)
    width = found.found[""][0].estimate.half_width
    assert pages.claims_table([found]).endswith(f"| **inconclusive** (±{width:.3f}) |")


def test_the_first_tc_dvae_runs_are_shown_next_to_those_that_replaced_them():
    found = judge(claims()["total_correlation"], tables.read_runs)
    first, second = (found.found[name][0] for name in ("first processor", "second processor"))
    assert first.runs[0] == second.runs[0]
    assert {run.name for run in first.runs[1]} == {run.name for run in second.runs[1]}
    assert first.estimate.value != second.estimate.value


def test_the_medians_of_pages_that_are_written_by_hand_are_those_of_their_tables():
    runs = {name: tables.read_csv(ROOT / "results" / name / "scores.csv") for name in ("own", "few_labels")}
    page = (ROOT / "results" / "few_labels" / "README.md").read_text(encoding="utf-8")
    medians = {}
    for row in runs["few_labels"]:
        key = row["dataset"], row["model"], row["latents"], row["free_penalty"]
        medians.setdefault(key, []).append(float(row["mig"]))
    assert len(medians) == 8
    for values in medians.values():
        assert f"| {', '.join(f'{value:.3f}' for value in values)} |" in page
        assert f"{np.median(values):.3f}" in page
    page = (ROOT / "results" / "own" / "README.md").read_text(encoding="utf-8")
    for model, title in (("dvae", "D-VAE"), ("tc-dvae", "TC-DVAE")):
        found = [
            np.median([float(row["mig"]) for row in runs["own"] if is_quick(row, each, model)])
            for each in ("dark", "light", "low_contrast", "icons", "letters")
        ]
        cells = " | ".join(f"{value:.3f}" for value in (*found, np.mean(found)))
        assert f"| {title} | {cells} |" in page


@pytest.mark.parametrize("name", ["order", "pairs"])
def test_small_studies_report_the_medians_and_intervals_of_their_tables(name):
    page = (ROOT / "results" / name / "README.md").read_text(encoding="utf-8")
    groups = {}
    for row in sorted(tables.read_csv(ROOT / "results" / name / "scores.csv"), key=lambda row: int(row["seed"])):
        groups.setdefault((row["model"], row.get("set learn_positions")), []).append(float(row["score mig"]))
    assert [len(values) for values in groups.values()] == [5] * 4
    for values in groups.values():
        assert f"| {', '.join(f'{value:.3f}' for value in values)} | {np.median(values):.3f} |" in page
    medians = {model: values for (model, learned), values in groups.items() if learned != "true"}
    pairs = {"order": [("one-hot-vae", "dvae"), ("von-mises-vae", "dvae")], "pairs": [("ada-gvae", "vae")]}
    for one, other in pairs[name]:
        low, high = bootstrap_interval(
            lambda first, second: np.median(first, 1) - np.median(second, 1),
            medians[one],
            medians[other],
            resamples=10_000,
        )
        assert f"{np.median(medians[one]) - np.median(medians[other]):+.3f} ({low:+.3f} to {high:+.3f})" in page


def is_quick(row, pictures, model):
    quick = row["mean_bias"] == "true" and "supervision" not in row and "discriminator_width" not in row
    return (row["set"], row["model"]) == (pictures, model) and quick


# ---- Next to the paper


@pytest.mark.parametrize(("value", "text"), [(0.15, "within"), (0.25, "0.050 above"), (0.1, "0.032 below")])
def test_a_median_is_placed_among_the_papers_quartiles(value, text):
    assert against_paper.place(value, against_paper.paper_number("dvae", "mig", "dsprites")) == text


def test_the_papers_vae_follows_from_its_gain():
    gain = paper_results()["claims"]["unregularized_mig_median_gain_percent"]["dsprites"]
    found = against_paper.paper_number("vae", "mig", "dsprites").value
    assert found * (1 + gain / 100) == pytest.approx(0.174)
    assert against_paper.paper_number("vae", "dci", "dsprites") is None
    assert against_paper.place(0.5, None) == "–"


def table_of(path, runs):
    """Write a table with the columns of results/families/scores.csv."""
    with (ROOT / "results" / "families" / "scores.csv").open(encoding="utf-8") as file:
        header = [*next(csv.reader(file)), tables.SCORE + tables.OWN_LATENTS]
    path.parent.mkdir(parents=True)
    rows = []
    for dataset, model, seed, scores in runs:
        row = dict.fromkeys(header, "") | {"dataset": dataset, "model": model, "seed": seed, "steps": 12000}
        row |= {tables.SETTING + "mean_bias": "true", "name": f"{dataset}_{model}_{seed}"}
        rows.append(row | {tables.SCORE + name: value for name, value in scores.items()})
    tables.write_csv(path, header, [[str(row[name]) for name in header] for row in rows])


def test_the_section_about_standard_appears_with_its_table(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    assert against_paper.standard_section() == against_paper.standard_note() == ""
    runs = [("dsprites", "dvae", seed, {"mig": 0.15 + seed / 100, "dci": 0.5}) for seed in range(5)]
    runs += [("dsprites", "vae", seed, {"mig": 0.04}) for seed in range(5)]
    runs += [("rooms", "dvae", seed, {"mig": 0.2 + seed / 10, tables.OWN_LATENTS: 3 + seed}) for seed in range(3)]
    table_of(tmp_path / "standard" / "scores.csv", runs)
    tables.write_csv(tmp_path / "costs.csv", ("preset", "model", "ms"), [("standard", "dvae", "30")])
    text = against_paper.standard_section()
    assert "Minutes of one core for a run on dSprites: D-VAE 6 (" in text
    assert "it is 0.170 (5 seeds)" in against_paper.standard_note()
    assert "Each model has 3 to 5 seeds on a\ndataset: medians of so few runs are uncertain." in text
    assert "| dSprites | D-VAE | MIG | 0.170 (0.160–0.180) | 5 | 0.174 (0.132–0.200) | within |" in text
    assert "| dSprites | D-VAE | DCI | 0.500 (0.500–0.500) | 5 | 0.256 (0.196–0.280) | 0.220 above |" in text
    assert "| rooms | D-VAE | MIG | 0.300 (0.250–0.350) | 3 | – | – |" in text
    assert (
        "| 12,000 | 768,000 | – | – | – | 0.150, 0.160, 0.170, 0.180, 0.190 |" in text
    )  # of the settings that were tried
    rules = [line for line in text.splitlines() if line.endswith("reached |") or "so far" in line]
    assert [line.split(" | ")[1:] for line in rules] == [
        ["0.170", "5", "reached |"],
        ["4.2 times", "5 and 5", "reached |"],
        ["4 factors", "3", "reached so far, with fewer runs than the rule takes |"],
    ]


def test_the_time_of_a_preset_is_that_of_its_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    table_of(tmp_path / "standard" / "scores.csv", [("dsprites", "dvae", 0, {"mig": 0.15})])
    tables.write_csv(tmp_path / "costs.csv", ("preset", "model", "ms"), [("standard", "dvae", "30")])
    first, second, *_ = against_paper.time_table().splitlines()[2:]
    assert first == "| lddr, preset `standard` | 12,000 | 30 | 6 minutes | 0.150 | 1 |"
    assert second.startswith("| lddr, the paper's settings | 300,000 |")


# ---- Choosing a model


@pytest.mark.long
def test_the_default_selector_has_the_lowest_regret():
    assert next(iter(selection.ordered())) == DEFAULT


def test_regret_is_0_for_an_oracle_and_about_1_for_a_blind_choice():
    generator = np.random.default_rng(1)
    truth = generator.random(40)
    runs = [Run(Path(f"r{n}"), "finished", {"seed": n}, {"mig": value}) for n, value in enumerate(truth)]
    alike = -np.abs(truth[:, None] - truth)  # the median model is the most central one
    np.fill_diagonal(alike, np.nan)
    columns = {"oracle": truth, "blind": generator.random(40), "tie": 0 * truth}
    pool = selection.Pool("d", runs, columns, {"udr": alike})

    def choosing(selector, size):
        return selection.choosing(pool, selector, size, draws=500)

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


# ---- Tables


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
        assert [one.scores for one in tables.read_runs("own/replaced.csv")] == [run.scores]  # trained again
    tables.borrow_rows("other", ["own"], {run.name}, {"dci"})  # a score it does not have
    assert not tables.read_runs("other")
    tables.borrow_rows("other", ["own"], {run.name, "x"}, {"mig"})
    assert [one.scores for one in tables.read_runs("other")] == [{"mig": 0.5}]


def test_an_unfinished_study_is_gathered_as_far_as_its_runs_are_scored(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    monkeypatch.setattr(tables, "run_row", row_of)
    study = pages.study_of("standard")
    ours = [config for config in study.configs if (config.dataset, config.model) == ("dsprites", "dvae")][:3]
    scores = dict.fromkeys(study.metrics, 0.5)
    runs = [
        Run(Path(config.run_name), "finished", config.flat() | {"dataset": "dsprites"}, scored)
        for config, scored in zip(ours, (scores, scores, {"mig": 0.1}), strict=True)
    ]
    monkeypatch.setattr(command, "list_runs", lambda folder: runs)
    monkeypatch.setattr(command, "STUDIES", ("standard",))
    for name in ("add_long", "measure_costs"):
        monkeypatch.setattr(command, name, lambda *arguments: None)
    command.gather(tmp_path)
    assert {run.name for run in tables.read_runs("standard")} == {run.name for run in runs[:2]}
    said = capsys.readouterr().out
    assert f"standard: 2 of {len(study.configs)} runs" in said
    assert f"{runs[2].name} is left out until it is scored by dci, modularity, sap" in said


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
    clear = np.array(entries["mig"]["per_factor"]) >= 0.1
    assert int(row["score own_latents"]) == len(set(np.argmax(information, axis=0)[clear]))


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
    monkeypatch.setattr(pages, "read_long", lambda: found)
    _, _, first, last = pages.initialisers_table().splitlines()
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


# ---- Types of discreteness, labels, pictures


def test_models_are_ranked_over_metrics_and_datasets(monkeypatch):
    mig = {("dsprites", "qlae"): 0.2, ("rooms", "qlae"): 0.2}
    runs = [
        run
        for dataset in ("dsprites", "rooms")
        for model in ("vae", "dvae", "qlae")
        for run in made_up(dataset, {"model": model}, {"mig": mig.get((dataset, model), 0.1)})
    ]
    monkeypatch.setattr(discrete, "read_runs", lambda study: runs)
    found = discrete.sections()
    assert (found["discrete_best"], found["discrete_best_rank"]) == ("QLAE", "1.0")
    assert (found["discrete_alike"], found["discrete_cases"], found["discrete_clear"]) == ("0", "2", "0.100 and 0.100")
    assert "| QLAE | 1.0 | 2 |" in found["discrete_ranks"]
    assert "| MIG | QLAE | VAE | +0.100 (" in found["discrete_datasets"]


def labelled_rows(**studies):
    return lambda *names: [run for name in names for run in studies.get(name, [])]


def test_labels_are_judged_against_the_better_rival():
    medians = {"vae": {"bce": 0.1, "l2": 0.3}, "dvae": {"cross-entropy": 0.15, "masked": 0.2}}
    runs = [
        run
        for model, losses in medians.items()
        for loss, value in losses.items()
        for run in made_up("dsprites", {"model": model, "supervision": loss, "labels": 100}, {"mig": value})
    ]
    rows = labelled_rows(labels=runs, families=made_up("dsprites", {"model": "dvae"}, {"mig": 0.15}))
    first = judge(claims()["labels"], rows)
    assert first.verdicts == {"": "contradicted"}
    assert "| −0.100 (" in pages.claims_table([first])
    assert judge(claims()["masking"], rows).verdicts == {"": "supported"}
    assert judge(claims()["some_labels"], rows).verdicts == {"": "inconclusive"}
    assert explanations.labels_explained(rows) == []  # these runs have no such scores
    for one in runs:
        one.scores.update({"tied.x": one.scores["mig"], "free.x": 2 * one.scores["mig"]})
    assert "| D-VAE, masked | 100 | 0.20 and 0.40 |" in explanations.labels_explained(rows)[1]
    assert judge(claims()["labels"], labelled_rows()) is None


def test_an_obstacle_to_labels_is_confirmed_if_the_mig_is_larger_without_it():
    masked = {"model": "dvae", "supervision": "masked", "labels": 1000}
    usual = made_up("dsprites", masked, {"mig": 0.2, "tied.x": 2.0, "free.x": 1.0})
    changed = made_up("dsprites", masked | {"mean_bias": "true"}, {"mig": 0.3, "tied.x": 1.9, "free.x": 0.3})
    assert "obstacle" not in str(explanations.labels_explained(labelled_rows(labels=usual)))
    *_, table = explanations.labels_explained(labelled_rows(labels=usual, ties=changed))
    last = table.splitlines()[-1]
    assert last.startswith("| mean bias | 0.302 | +0.100 ")
    assert last.endswith("| 5 | supported | 1.90 and 0.30 |")


def test_a_sheet_of_latent_grids_is_cut_into_its_panels():
    for name, first in (("circles-vae", (0.8, 1.0)), ("circles-dvae", (0.8, 1.0))):
        panels = figures.sheet_panels(ROOT / "results" / "circles" / f"{name}.png", 50)
        sizes = np.array([panel.shape[:2] for panel in panels])
        assert np.ptp(sizes, axis=0).max() <= 1
        assert first[0] < np.mean(panels[0] > 200) < first[1]  # mostly paper, and no frame
        assert all((panel[:, 0] > 200).all() for panel in panels[:5])
