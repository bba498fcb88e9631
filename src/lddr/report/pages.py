"""The pages of `lddr report`, `lddr show` and `lddr compare`."""

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lddr.console import watched
from lddr.errors import UserError
from lddr.files import written_whole
from lddr.report.exhibits import Figures, Missing, Source, Table, card_figures, figures, made, tables, write_table
from lddr.report.groups import Collection, Group, Reasons, collect, unique, unpublished
from lddr.report.html import (
    DPI,
    Picture,
    Section,
    code_card,
    facts_card,
    gallery,
    missing_card,
    page,
    side_by_side,
    table_card,
    table_cards,
)
from lddr.report.reproduce import commands, compare_command, report_command, show_command
from lddr.report.style import dataset_title, method_title, model_title, rendered_as
from lddr.report.traversals import LoadedRun, animation
from lddr.runs.folder import is_shipped
from lddr.runs.index import TRAINING_SCORES, Run, Value, gather
from lddr.runs.tables import default_columns, matching, shown

if TYPE_CHECKING:
    from lddr.data.dataset import Dataset


SOME = 6  # names that a sentence lists
FIRST_FIGURE = "families"  # the figure at the top of a report


def write_report(
    roots: Sequence[Path], out: Path = Path("report"), where: Sequence[str] = ()
) -> tuple[Path, list[str]]:
    """Write the page, its tables and its figures; gives the page, and what was compared, left out, made and missed."""
    runs = gather(roots)
    if not runs:
        raise UserError(f"there are no runs below {', '.join(map(str, roots))}; train one with: lddr train")
    found = collect(matching(runs, where))
    if not found.groups:
        raise UserError(f"there is no finished run to report on ({_sentence(found.left_out)})")
    no_table: Missing = {}
    shown = [table for _, table in made(tables.in_order(), found.groups, no_table)]
    for table in shown:
        write_table(table, out / "tables")
    no_figure: Missing = {}
    pictures = pictures_of(figures, found.main, out / "figures", no_figure)
    missing = {f"Table: {title}": reason for title, reason in no_table.items()}
    missing |= {f"Figure: {title}": reason for title, reason in no_figure.items()}
    again = [*commands(found.groups), report_command(roots, out, where)]
    write(out / "index.html", _report_page(found, shown, pictures, missing, again).encode(errors="replace"))
    return out / "index.html", _told(found, len(shown), len(pictures), missing)


def _report_page(
    found: Collection, shown: Sequence[Table], pictures: Sequence[Picture], missing: Missing, again: Sequence[str]
) -> str:
    settings = facts_card("Runs", contents(found.groups)) + table_card(setup_table(found.groups), downloads=False)
    lead, others = (
        [picture for picture in pictures if (picture.name == FIRST_FIGURE) == first] for first in (True, False)
    )
    sections = [
        Section("At a glance", gallery(lead)),
        Section("Tables", table_cards(shown) if shown else ""),
        Section("Figures", _which_runs(found) + gallery(others)),
        Section("What is missing", missing_card(missing)),
        Section("Collapsed", _collapsed(found)),
        Section("Left out", facts_card("", {reason: some(names) for reason, names in found.left_out.items()})),
        Section("Settings", settings),
        Section("Runs", table_card(run_table(found.runs), tall=True)),
        Section("Environment", facts_card("", environment(found.runs))),
        Section("Do it again", code_card("Commands", again)),
    ]
    sources = " ".join(dict.fromkeys(table.source for table in shown if table.source))
    return page("Disentangled representations", _lead(found), sections, sources)


def _lead(found: Collection) -> str:
    models = dict.fromkeys(model_title(str(run.value("model"))) for run in found.runs)
    groups = "; ".join(f"{group.label} ({many(len(group.runs), 'run')})" for group in found.groups)
    return f"{', '.join(models)} on {groups}. Only runs with the same dataset and settings are compared."


def _which_runs(found: Collection) -> str:
    """Which runs the figures show, where that is not all of them."""
    others = [group.label for group in found.groups if group not in found.main]
    if not others:
        return ""
    shown = "; ".join(group.label for group in found.main)
    told = f"{'; '.join(others)} (for figures of these alone, choose them with --where)"
    return facts_card("", {"In the figures": shown, "Not in the figures": told}, warning=True)


def _collapsed(found: Collection) -> str:
    """Which runs have learned nothing; they count in the tables all the same."""
    names = [run.name for run in found.runs if run.collapsed]
    return facts_card("", {"No better than the mean image": some(names)}, warning=True) if names else ""


def _told(found: Collection, num_tables: int, num_figures: int, missing: Missing) -> list[str]:
    """For the console."""
    lines = []
    for group in found.groups:
        setup = ", ".join(f"{name} {group.setup.get(name)}" for name in ("steps", "precision", "resolution"))
        lines.append(f"compared: {group.label}, {many(len(group.runs), 'run')} ({setup})")
    if names := [run.name for run in found.runs if run.collapsed]:
        lines.append(f"collapsed, no better than the mean image: {some(names)}")
    lines += [f"left out: {some(names)}: {reason}" for reason, names in found.left_out.items()]
    lines.append(f"made: {many(num_tables, 'table')}, {many(num_figures, 'figure')}")
    return lines + [f"missing: {title}: {reason}" for title, reason in missing.items()]


def _sentence(reasons: Reasons) -> str:
    """What was left out and why."""
    return "; ".join(f"{some(names)}: {reason}" for reason, names in reasons.items()) or "none is left"


def some(names: Sequence[str]) -> str:
    """The first of many names."""
    return ", ".join(names[:SOME]) + (f" and {len(names) - SOME} more" if len(names) > SOME else "")


def many(count: int, word: str) -> str:
    """A number and its noun."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


STATES = {
    "finished": "trained to the end",
    "training": "not trained to the end yet",
    "collapsed": "collapsed: its reconstructions are no better than the mean image",
}


def write_card(run: Run, out: Path | None = None, dataset: "Dataset | None" = None) -> tuple[Path, Missing]:
    """Write the page and its figures, into the run's folder unless told otherwise; gives it and what is missing.

    A shipped model's go below `card` in the current folder. `dataset` holds the images if they are only in memory.
    """
    usual = Path("card", run.name) if is_shipped(run.folder) else run.folder / "card"
    folder, missing, loaded = out or usual, Missing(), LoadedRun(run, dataset)
    pictures = pictures_of(card_figures, loaded, folder / "figures", missing)
    with suppress(UserError):  # the still traversals, which need the same, say why
        moving = animation(loaded)
        write(folder / "figures" / "traversals.gif", moving)
        told = "Every latent goes through its values and back, the others kept."
        pictures.append(Picture("animation", "Traversals, animated", told, moving))
    write(folder / "index.html", _card_page(run, pictures, missing).encode(errors="replace"))
    return folder / "index.html", missing


def _card_page(run: Run, pictures: Sequence[Picture], missing: Missing) -> str:
    undefined = facts_card("Scores without a value", undefined_scores(run))
    sections = [
        Section("Scores", scores_card([run], ["Value"]) + undefined),
        Section("Figures", gallery(pictures)),
        Section("What is missing", missing_card(missing)),
        Section("Settings", table_card(setting_table([run], ["Value"]), downloads=False)),
        Section("Environment", facts_card("", environment([run]))),
        Section("Do it again", code_card("Commands", [*commands(collect([run]).groups), show_command(run)])),
    ]
    title = f"{method_title(run)} on {dataset_title(str(run.value('dataset')))}"
    return page(title, f"{run.name}, {STATES.get(str(run.value('state')), f'broken: {run.reason}')}", sections)


def scores_card(runs: Sequence[Run], labels: Sequence[str]) -> str:
    """The headline scores, and all of them to unfold."""
    if not any(run.scores for run in runs):
        return facts_card("", {"No scores yet": "get them with: lddr evaluate RUN"})
    more = table_card(score_table(runs, labels), downloads=False, tall=True)
    headlines = table_card(score_table(runs, labels, headlines=True))
    return f"{headlines}<details><summary>All numbers</summary>{more}</details>"


def write_comparison(runs: Sequence[Run], out: Path = Path("compare")) -> Path:
    """Write the page and its figures; gives it."""
    runs = unique(runs)
    if len(runs) < 2:
        raise UserError("give at least two different runs to compare; one alone is shown by: lddr show RUN")
    labels = [f"{method_title(run)}, seed {run.value('seed')} ({run.run})" for run in runs]
    kinds: dict[str, list[Picture]] = {}  # the figures of one kind together
    missing: Missing = {}
    for run, label in zip(runs, labels, strict=True):
        lacking: Missing = {}
        for picture in pictures_of(card_figures, LoadedRun(run), out / "figures", lacking, f"{run.run}-"):
            kinds.setdefault(picture.title, []).append(replace(picture, title=f"{picture.title}: {label}"))
        missing |= {f"{title}: {label}": reason for title, reason in lacking.items()}
    sections = [
        Section("Scores", _warning(runs) + scores_card(runs, labels)),
        Section("Settings", table_card(setting_table(runs, labels, differing=True), downloads=False)),
        Section("Figures", "".join(map(side_by_side, kinds.values()))),
        Section("What is missing", missing_card(missing)),
        Section("Environment", facts_card("", environment(runs))),
        Section("Do it again", code_card("Commands", [compare_command(runs, out)])),
    ]
    text = page(f"{len(runs)} models compared", "; ".join(labels), sections)
    write(out / "index.html", text.encode(errors="replace"))
    return out / "index.html"


def _warning(runs: Sequence[Run]) -> str:
    """In which settings runs differ that must not differ when scores are compared."""
    groups = collect([run for run in runs if run.state == "finished"]).groups
    if len(groups) < 2:
        return ""
    names = dict.fromkeys(name for group in groups for name in group.setup)
    differing = [name for name in names if len({group.setup.get(name) for group in groups}) > 1]
    told = f"they differ in {', '.join(differing)}, so a better score may come from that alone"
    return facts_card("", {"These runs are not comparable": told}, warning=True)


def pictures_of(
    figures: Figures[Source], source: Source, folder: Path, missing: Missing, prefix: str = ""
) -> list[Picture]:
    """Draw all figures, write each as PNG and SVG, and note which could not be drawn."""
    pictures = []
    for exhibit, drawn in made(watched(figures.in_order(), "drawing"), source, missing):
        name = prefix + exhibit.name
        content = rendered_as(("png", "svg"), drawn.figure, DPI)
        for kind, held in content.items():
            write(folder / f"{name}.{kind}", held)
        pictures.append(Picture(name, exhibit.title, drawn.caption, content["png"]))
    return pictures


def write(path: Path, content: bytes) -> None:
    """A file of a page."""
    with written_whole(path) as draft:
        draft.write_bytes(content)


LAST = ("checksum",)  # the settings that interest least
READABLE = {"checksum": "images"}


def setup_table(groups: Sequence[Group]) -> Table:
    """The settings that all runs of a group share, a column per group."""
    names = dict.fromkeys(name for group in groups for name in group.setup if name != "dataset")
    ordered = [name for name in names if name not in LAST] + [name for name in LAST if name in names]
    rows = [("runs", *(str(len(group.runs)) for group in groups))]
    rows += [(READABLE.get(name, name), *(_word(group.setup.get(name)) for group in groups)) for name in ordered]
    rows += [("images are", *(_origins(group) for group in groups))]
    rows += [(f"metric {metric}", *_metric_words(metric, groups)) for metric in _metrics(groups)]
    title = "Settings that are the same for all runs of a column"
    return Table("settings", title, ("Setting", *(group.label for group in groups)), tuple(rows))


def _origins(group: Group) -> str:
    """Where the images of a group come from, and of how many runs if from several places."""
    counts = Counter(str(run.files.images.get("origin", "of unknown origin")) for run in group.runs)
    return ", ".join(counts) if len(counts) == 1 else ", ".join(f"{name} ({count})" for name, count in counts.items())


def contents(groups: Sequence[Group]) -> dict[str, str]:
    """Which models a group has, and how many runs of each."""
    return {group.label: _models(group) for group in groups}


def _models(group: Group) -> str:
    counts = Counter(method_title(run) for run in group.runs)
    return "; ".join(f"{title} ({count})" for title, count in counts.items())


def _metrics(groups: Sequence[Group]) -> list[str]:
    return list(dict.fromkeys(metric for group in groups for metric in group.metric_settings))


def _metric_words(metric: str, groups: Sequence[Group]) -> list[str]:
    """Whether a metric has its published settings, group by group."""
    used = [group.metric_settings.get(metric) for group in groups]
    return ["" if one is None else ", ".join(unpublished(metric, one)) or "as published" for one in used]


def run_table(runs: Sequence[Run]) -> Table:
    """Every run with the settings that differ and its scores."""
    columns = [column for column in default_columns(runs) if column not in LAST]
    rows = tuple(tuple(shown(run.value(column)) for column in columns) for run in runs)
    return Table("runs", f"All {len(runs)} runs", tuple(columns), rows)


def score_table(runs: Sequence[Run], labels: Sequence[str], headlines: bool = False) -> Table:
    """The scores of some runs, a column per run, those of the metrics first; all of them, or the headlines."""
    names = dict.fromkeys(name for run in runs for name in run.scores if not headlines or "." not in name)
    ordered = sorted(names, key=lambda name: (name.split(".")[0] in TRAINING_SCORES, name))
    rows = tuple((name, *(shown(run.scores.get(name)) for run in runs)) for name in ordered)
    name, title = ("scores", "Headline scores") if headlines else ("all-scores", "All scores")
    return Table(name, title, ("Score", *labels), rows)


def setting_table(runs: Sequence[Run], labels: Sequence[str], differing: bool = False) -> Table:
    """The settings of some runs, a column per run; all of them, or those that differ."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    kept = [name for name in names if not differing or len({run.value(name) for run in runs}) > 1]
    rows = tuple((name, *(_word(run.value(name)) for run in runs)) for name in kept)
    title = "Settings that differ" if differing else "All settings"
    return Table("run-settings", title, ("Setting", *labels), rows)


def undefined_scores(run: Run) -> dict[str, str]:
    """The metrics that have no score here, and why."""
    entries = run.files.metrics.items()
    return {name: str(entry.get("reason")) for name, entry in entries if entry.get("score") is None}


def environment(runs: Sequence[Run]) -> dict[str, str]:
    """What the runs were made with, and what this page was."""
    import matplotlib

    import lddr

    counts = Counter(_versions(run.files.versions) for run in runs)
    made = {versions: f"{count} runs" if count > 1 else "1 run" for versions, count in counts.items()}
    here = f"lddr {lddr.__version__}, python {platform.python_version()}, matplotlib {matplotlib.__version__}"
    return made | {"this page": f"{here}, {platform.system()} {platform.machine()}"}


def _versions(versions: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items()) or "unknown"


def _word(value: Value) -> str:
    return "none" if value is None else shown(value)
