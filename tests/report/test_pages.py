import json
from pathlib import Path

import pytest

from lddr.cli import main
from lddr.errors import UserError
from lddr.metrics.metric import UndefinedError
from lddr.report import pages
from lddr.report.exhibits import Drawn, Exhibits
from lddr.report.groups import collect
from lddr.report.pages import environment, setup_table
from lddr.report.style import new_figure


def tiny_figures(kind):
    """A registry with a figure that can be drawn and one that never can."""
    registry = Exhibits(kind, homes=())

    @registry.add("dot", "A dot", 1)
    def dot(source):
        figure = new_figure(2, 2)
        figure.subplots().plot([0], [0], "o")
        return Drawn(figure, "one dot")

    @registry.add("never", "Never drawn", 2)
    def never(source):
        raise UndefinedError("it would need a miracle")

    return registry


@pytest.fixture
def few_figures(monkeypatch):
    monkeypatch.setattr(pages, "figures", tiny_figures("figure"))
    monkeypatch.setattr(pages, "card_figures", tiny_figures("figure of a model"))


def make_report(roots, out, where=()):
    main(
        [
            "report",
            *map(str, roots),
            "--out",
            str(out),
            *(word for condition in where for word in ("--where", condition)),
        ]
    )
    return out / "index.html"


def show_run(name, out=None):
    main(["show", name, *(["--out", str(out)] if out else [])])
    return (out or Path(name) / "card") / "index.html"


def compare_runs(names, out):
    main(["compare", *names, "--out", str(out)])
    return out / "index.html"


@pytest.fixture
def runs(make_run):
    made = [make_run("dvae", "dsprites", seed, {"mig": 0.1 * seed, "gap": 5.0 - seed}) for seed in (1, 2, 3)]
    return [*made, make_run("vae", "dsprites", 0, {"mig": 0.1})]


def test_a_report_is_a_page_with_tables_and_figures_as_files(few_figures, runs, tmp_path, capsys):
    target = make_report([tmp_path / "runs"], tmp_path / "report")
    assert target == tmp_path / "report" / "index.html"
    written = {str(path.relative_to(target.parent)) for path in target.parent.rglob("*") if path.is_file()}
    assert {"tables/mig.md", "tables/mig.tex", "tables/mig.csv", "figures/dot.png", "figures/dot.svg"} < written
    assert not [name for name in written if "never" in name]
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "compared: dSprites, 4 runs (steps 300000, precision fp32, resolution None)"
    assert "missing: Figure: Never drawn: it would need a miracle" in told
    assert any(line.startswith("missing: Table: MIG in % of the semi-supervised models") for line in told)
    assert told[-1] == f"open {target}"


def test_the_page_says_what_it_shows_and_what_is_missing(few_figures, runs, tmp_path, visit):
    visited = visit(make_report([tmp_path / "runs"], tmp_path / "report"))
    text = visited.page.locator("main").inner_text()
    assert (visited.said, visited.left) == ([], [])
    assert visited.page.locator("nav a").all_inner_texts() == [
        "Tables", "Figures", "What is missing", "Settings", "Runs", "Environment", "Reproduce",
    ]  # fmt: skip
    assert "it would need a miracle" not in text  # folded away
    visited.page.locator("summary", has_text="tables and figures need more runs or scores").click()
    assert "it would need a miracle" in visited.page.locator("main").inner_text()
    assert "lddr 0.1, torch 2.13.0, python 3.11.7" in text
    assert (
        f"for seed in 1 2 3; do lddr train --model dvae --dataset dsprites --preset paper --out {tmp_path / 'runs'}"
        in text
    )
    assert f"lddr report {tmp_path / 'runs'} --out {tmp_path / 'report'}" in text
    assert visited.page.locator("#table-runs tbody tr").count() == 4
    assert visited.page.locator("img").evaluate_all("all => all.map(one => one.naturalWidth)") == [300]


def test_the_same_runs_give_the_same_page(few_figures, runs, tmp_path):
    first = make_report([tmp_path / "runs"], tmp_path / "report").read_bytes()
    assert make_report([tmp_path / "runs"], tmp_path / "report").read_bytes() == first


def test_incomparable_runs_are_separate_groups(few_figures, runs, make_run, tmp_path, capsys):
    make_run("dvae", "dsprites", 1, {"mig": 0.9}, steps=1000)
    page = make_report([tmp_path / "runs"], tmp_path / "report").read_text()
    assert "compared: dSprites, steps 1000, 1 run" in capsys.readouterr().out
    assert "Not in the figures" in page


def test_only_some_runs(few_figures, runs, tmp_path, capsys):
    make_report([tmp_path / "runs"], tmp_path / "report", ["model=vae"])
    assert "compared: dSprites, 1 run " in capsys.readouterr().out


def test_there_must_be_something_to_report(few_figures, make_run, tmp_path):
    with pytest.raises(UserError, match="there are no runs below"):
        pages.write_report([tmp_path], tmp_path / "report")
    run = make_run("dvae", "dsprites")
    (run.folder / "scores.json").unlink()
    with pytest.raises(UserError, match=r"no finished run to report on .*not trained to the end"):
        pages.write_report([tmp_path / "runs"], tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_a_report_of_real_runs_with_all_figures(trained, tmp_path, visit):
    visited = visit(make_report([trained[0].parent], tmp_path / "report"))
    assert (visited.said, visited.left) == ([], [])
    widths = visited.page.locator("img").evaluate_all("all => all.map(one => one.naturalWidth)")
    assert len(widths) == len(list((tmp_path / "report" / "figures").glob("*.png"))) >= 5
    assert all(widths)


def test_the_card_of_a_model(trained, tmp_path, visit, capsys):
    visited = visit(show_run(str(trained[1]), tmp_path / "card"))
    assert (visited.said, visited.left) == ([], [])
    assert visited.page.title() == "D-VAE on Circles"
    assert "mig" in visited.page.locator("#table-scores").inner_text()
    widths = visited.page.locator("img").evaluate_all("all => all.map(one => one.naturalWidth)")
    assert len(widths) >= 4
    assert all(widths)
    assert (tmp_path / "card" / "figures" / "traversals.gif").exists()
    assert capsys.readouterr().out.splitlines()[-1] == f"open {tmp_path / 'card' / 'index.html'}"


def test_a_card_is_kept_with_its_run_and_is_no_run(few_figures, make_run):
    run = make_run("vae", "dsprites", 0, {"mig": 0.1, "gap": {"score": None, "reason": "no categories to round to"}})
    target = show_run(str(run.folder))
    assert target == run.folder / "card" / "index.html"
    assert "no categories to round to" in target.read_text()


def test_an_unfinished_run_has_a_card_too(few_figures, make_run, tmp_path):
    run = make_run("dvae", "dsprites")
    (run.folder / "scores.json").unlink()
    page = show_run(str(run.folder), tmp_path / "card").read_text()
    assert "not trained to the end yet" in page
    assert "lddr evaluate RUN" in page


def test_runs_side_by_side(few_figures, runs, tmp_path, visit, capsys):
    pair = [runs[3], runs[0]]
    visited = visit(compare_runs([str(run.folder) for run in pair], tmp_path / "compare"))
    assert (visited.said, visited.left) == ([], [])
    labels = [f"VAE, seed 0 ({pair[0].run})", f"D-VAE, seed 1 ({pair[1].run})"]
    assert visited.page.locator("#table-scores thead th").all_inner_texts() == ["Score", *labels]
    assert visited.page.locator("figure h3").all_inner_texts() == [f"A dot: {label}" for label in labels]
    assert sorted(path.name for path in (tmp_path / "compare" / "figures").iterdir()) == sorted(
        f"{run.run}-dot.{kind}" for run in pair for kind in ("png", "svg")
    )
    assert "not comparable" not in visited.page.locator("main").inner_text()


def test_a_warning_where_scores_do_not_mean_the_same(few_figures, make_run, tmp_path):
    names = [str(make_run("dvae", "dsprites", 0, {"mig": 0.1}, steps=steps).folder) for steps in (10, 20)]
    page = compare_runs(names, tmp_path / "compare").read_text()
    assert "they differ in steps, which may explain a difference in scores" in page


def test_one_run_is_nothing_to_compare(few_figures, make_run):
    run = make_run("dvae", "dsprites")
    with pytest.raises(UserError, match="at least two different runs"):
        pages.write_comparison([run, run], Path("nowhere"))


def test_the_environment_lists_every_version(make_run):
    runs = [make_run("dvae", "dsprites", seed) for seed in range(4)]
    for other in runs[2:]:
        other.files.config_file.write_text(other.files.config_file.read_text().replace("2.13.0", "9.9.9"))
    told = environment(runs)
    assert [count for versions, count in told.items() if "torch" in versions] == ["2 runs", "2 runs"]


def test_settings_say_where_the_images_come_from(make_run):
    runs = [make_run("dvae", "dsprites", seed, {"mig": 0.1}) for seed in range(3)]
    for each, origin in zip(runs, ("redrawn", "official file", "redrawn"), strict=True):
        content = json.loads((each.folder / "config.json").read_text())
        content["dataset"]["origin"] = origin
        (each.folder / "config.json").write_text(json.dumps(content))
    (group,) = collect(runs).groups  # comparable
    assert ("images are", "redrawn (2), official file (1)") in setup_table([group]).rows
    (old,) = collect([make_run("vae", "rooms")]).groups
    assert ("images are", "of unknown origin") in setup_table([old]).rows
