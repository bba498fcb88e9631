"""The pages of `lddr report`, `lddr show` and `lddr compare`."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lddr.console import watched
from lddr.errors import UserError
from lddr.files import written_whole
from lddr.report import html
from lddr.report.exhibits import (
    Drawn,
    Exhibits,
    Missing,
    Source,
    Table,
    card_figures,
    figures,
    make_all,
    tables,
    write_table,
)
from lddr.report.groups import Collection, Group, collect, unique, unpublished
from lddr.report.html import Picture, Section, facts_card, table_card
from lddr.report.reproduce import compare_command, report_command, run_commands, show_command
from lddr.report.style import dataset_title, method_title, model_title, rendered_as
from lddr.report.traversals import LoadedRun, animation
from lddr.runs.folder import is_shipped
from lddr.runs.index import TRAINING_SCORES, Run, Value, code_rows, gather
from lddr.runs.tables import default_columns, matching, shown

if TYPE_CHECKING:
    from lddr.data.dataset import Dataset

LISTED = 6  # names that a sentence lists
FIRST_FIGURE = "families"  # the figure at the top of a report
CHECKSUM = "checksum"  # of the images, which is listed last
STATES = {
    "finished": "trained to the end",
    "training": "not trained to the end yet",
    "collapsed": "collapsed: its reconstructions are no better than the mean image",
}


def write_report(
    roots: Sequence[Path], out: Path = Path("report"), where: Sequence[str] = ()
) -> tuple[Path, list[str]]:
    """Write index.html, tables and figures of all runs below some folders; return the page and lines to print."""
    everyone = gather(roots)
    if not everyone:
        raise UserError(f"there are no runs below {', '.join(map(str, roots))}; train one with: lddr train")
    collection = collect(matching(everyone, where))
    if not collection.groups:
        reasons = "; ".join(f"{_listed(names)}: {reason}" for reason, names in collection.left_out.items())
        raise UserError(f"there is no finished run to report on ({reasons or 'none is left'})")
    no_table, no_figure = Missing(), Missing()
    shown_tables = [table for _, table in make_all(tables.in_order(), collection.groups, no_table)]
    for table in shown_tables:
        write_table(table, out / "tables")
    pictures = draw_all(figures, collection.main, out / "figures", no_figure)
    missing = {f"Table: {title}": reason for title, reason in no_table.items()}
    missing |= {f"Figure: {title}": reason for title, reason in no_figure.items()}
    again = [*run_commands(collection.groups), report_command(roots, out, where)]
    groups, runs = collection.groups, collection.runs
    models = dict.fromkeys(model_title(str(run.value("model"))) for run in runs)
    counts = "; ".join(f"{group.label} ({_counted(len(group.runs), 'run')})" for group in groups)
    lead = f"{', '.join(models)} on {counts}. Only runs with the same dataset and settings are compared."
    collapsed = [run.name for run in runs if run.collapsed]
    sections = [
        Section("At a glance", html.gallery([picture for picture in pictures if picture.name == FIRST_FIGURE])),
        Section("Tables", html.table_cards(shown_tables)),
        Section(
            "Figures",
            _which_runs(collection) + html.gallery([each for each in pictures if each.name != FIRST_FIGURE]),
        ),
        Section("What is missing", html.missing_card(missing)),
        Section("Collapsed", _warning({"No better than the mean image": _listed(collapsed)} if collapsed else {})),
        Section("Left out", facts_card("", {why: _listed(names) for why, names in collection.left_out.items()})),
        Section("Settings", facts_card("Runs", _contents(groups)) + table_card(setup_table(groups), downloads=False)),
        Section("Runs", table_card(_run_table(runs), tall=True)),
        Section("Environment", facts_card("", environment(runs))),
        Section("Reproduce", html.code_card("Commands", again)),
    ]
    sources = " ".join(dict.fromkeys(table.source for table in shown_tables if table.source))
    _write(out / "index.html", html.page("Disentangled representations", lead, sections, sources))
    return out / "index.html", _summary(collection, len(shown_tables), len(pictures), missing)


def _which_runs(collection: Collection) -> str:
    """Return a card that names the groups in the figures, if these are not all."""
    others = [group.label for group in collection.groups if group not in collection.main]
    if not others:
        return ""
    hidden = f"{'; '.join(others)} (for figures of these alone, choose them with --where)"
    return _warning(
        {"In the figures": "; ".join(group.label for group in collection.main), "Not in the figures": hidden}
    )


def _warning(facts: dict[str, str]) -> str:
    return facts_card("", facts, warning=True)


def _summary(collection: Collection, num_tables: int, num_figures: int, missing: Missing) -> list[str]:
    """Return the lines that `lddr report` prints."""
    lines = []
    for group in collection.groups:
        setup = ", ".join(f"{name} {group.setup.get(name)}" for name in ("steps", "precision", "resolution"))
        lines.append(f"compared: {group.label}, {_counted(len(group.runs), 'run')} ({setup})")
    if names := [run.name for run in collection.runs if run.collapsed]:
        lines.append(f"collapsed, no better than the mean image: {_listed(names)}")
    lines += [f"left out: {_listed(names)}: {reason}" for reason, names in collection.left_out.items()]
    lines.append(f"made: {_counted(num_tables, 'table')}, {_counted(num_figures, 'figure')}")
    return lines + [f"missing: {title}: {reason}" for title, reason in missing.items()]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def write_card(run: Run, out: Path | None = None, dataset: Dataset | None = None) -> tuple[Path, Missing]:
    """Write the page of one model and its figures, by default into the run's folder; return it and what is missing.

    The page of a shipped model goes below `card` in the current folder. `dataset` holds images that are only in memory.
    """
    default = Path("card", run.name) if is_shipped(run.folder) else run.folder / "card"
    folder, missing, loaded = out or default, Missing(), LoadedRun(run, dataset)
    pictures = draw_all(card_figures, loaded, folder / "figures", missing)
    with suppress(UserError):  # the still traversals, which need the same, report why
        moving = animation(loaded)
        _write(folder / "figures" / "traversals.gif", moving)
        caption = "Each latent passes through its values and back, with the others fixed."
        pictures.append(Picture("animation", "Traversals, animated", caption, moving))
    undefined = {
        name: str(entry.get("reason")) for name, entry in run.files.metrics.items() if entry.get("score") is None
    }
    facts = facts_card("Scores without a value", undefined) + facts_card("Codes used by each latent", code_rows(run))
    sections = [
        Section("Scores", _scores_card([run], ["Value"]) + facts),
        Section("Figures", html.gallery(pictures)),
        Section("What is missing", html.missing_card(missing)),
        Section("Settings", table_card(setting_table([run], ["Value"]), downloads=False)),
        Section("Environment", facts_card("", environment([run]))),
        Section("Reproduce", html.code_card("Commands", [*run_commands(collect([run]).groups), show_command(run)])),
    ]
    title = f"{method_title(run)} on {dataset_title(str(run.value('dataset')))}"
    state = STATES.get(str(run.value("state")), f"broken: {run.reason}")
    _write(folder / "index.html", html.page(title, f"{run.name}, {state}", sections))
    return folder / "index.html", missing


def _scores_card(runs: Sequence[Run], labels: Sequence[str]) -> str:
    """Return the headline scores, and all of them to unfold."""
    if not any(run.scores for run in runs):
        return facts_card("", {"No scores yet": "get them with: lddr evaluate RUN"})
    more = table_card(score_table(runs, labels), downloads=False, tall=True)
    headlines = table_card(score_table(runs, labels, headlines=True))
    return f"{headlines}<details><summary>All numbers</summary>{more}</details>"


def write_comparison(runs: Sequence[Run], out: Path = Path("compare")) -> Path:
    """Write a page with models side by side and its figures; return it."""
    runs = unique(runs)
    if len(runs) < 2:
        raise UserError("give at least two different runs to compare; one alone is shown by: lddr show RUN")
    labels = [f"{method_title(run)}, seed {run.value('seed')} ({run.run})" for run in runs]
    rows: dict[str, list[Picture]] = {}  # the same figure of all runs
    missing: Missing = {}
    first = LoadedRun(runs[0])
    for run, label in zip(runs, labels, strict=True):
        lacking: Missing = {}
        loaded = LoadedRun(run, like=first if run.value("checksum") == runs[0].value("checksum") else None)
        for picture in draw_all(card_figures, loaded, out / "figures", lacking, f"{run.run}-"):
            rows.setdefault(picture.title, []).append(replace(picture, title=f"{picture.title}: {label}"))
        missing |= {f"{title}: {label}": reason for title, reason in lacking.items()}
    sections = [
        Section("Scores", _incomparable(runs) + _scores_card(runs, labels)),
        Section("Settings", table_card(setting_table(runs, labels, differing=True), downloads=False)),
        Section("Figures", "".join(map(html.side_by_side, rows.values()))),
        Section("What is missing", html.missing_card(missing)),
        Section("Environment", facts_card("", environment(runs))),
        Section("Reproduce", html.code_card("Commands", [compare_command(runs, out)])),
    ]
    _write(out / "index.html", html.page(f"{len(runs)} models compared", "; ".join(labels), sections))
    return out / "index.html"


def _incomparable(runs: Sequence[Run]) -> str:
    """Return a card that names the settings in which runs differ although their scores are compared."""
    groups = collect([run for run in runs if run.state == "finished"]).groups
    if len(groups) < 2:
        return ""
    names = dict.fromkeys(name for group in groups for name in group.setup)
    differing = [name for name in names if len({group.setup.get(name) for group in groups}) > 1]
    reason = f"they differ in {', '.join(differing)}, which may explain a difference in scores"
    return _warning({"These runs are not comparable": reason})


def draw_all(
    registry: Exhibits[Source, Drawn], source: Source, folder: Path, missing: Missing, prefix: str = ""
) -> list[Picture]:
    """Draw all figures of a registry, write each as PNG and SVG, and note which could not be drawn."""
    pictures = []
    for exhibit, drawn in make_all(watched(registry.in_order(), "drawing"), source, missing):
        name = prefix + exhibit.name
        content = rendered_as(("png", "svg"), drawn.figure, html.DPI)
        for ending, data in content.items():
            _write(folder / f"{name}.{ending}", data)
        pictures.append(Picture(name, exhibit.title, drawn.caption, content["png"]))
    return pictures


def _write(path: Path, content: bytes | str) -> None:
    with written_whole(path) as draft:
        draft.write_bytes(content.encode(errors="replace") if isinstance(content, str) else content)


def setup_table(groups: Sequence[Group]) -> Table:
    """Return the settings that all runs of a group share, a column per group."""
    names = dict.fromkeys(name for group in groups for name in group.setup if name != "dataset")
    rows = [("runs", *(str(len(group.runs)) for group in groups))]
    for name in sorted(names, key=lambda name: name == CHECKSUM):
        title = "images" if name == CHECKSUM else name
        rows.append((title, *(_setting(group.setup.get(name)) for group in groups)))
    rows.append(("images are", *(_origins(group) for group in groups)))
    for metric in dict.fromkeys(metric for group in groups for metric in group.metric_settings):
        used = [group.metric_settings.get(metric) for group in groups]
        words = ["" if one is None else ", ".join(unpublished(metric, one)) or "as published" for one in used]
        rows.append((f"metric {metric}", *words))
    title = "Settings that are the same for all runs of a column"
    return Table("settings", title, ("Setting", *(group.label for group in groups)), tuple(rows))


def _origins(group: Group) -> str:
    """Return where the images of a group come from, with the number of runs if from several places."""
    counts = Counter(str(run.files.images.get("origin", "of unknown origin")) for run in group.runs)
    return ", ".join(counts) if len(counts) == 1 else ", ".join(f"{name} ({count})" for name, count in counts.items())


def _contents(groups: Sequence[Group]) -> dict[str, str]:
    """Return the models of each group, and the number of runs of each."""
    counts = {group.label: Counter(map(method_title, group.runs)) for group in groups}
    return {label: "; ".join(f"{title} ({count})" for title, count in found.items()) for label, found in counts.items()}


def _run_table(runs: Sequence[Run]) -> Table:
    """Return every run with the settings that differ and its scores."""
    columns = [column for column in default_columns(runs) if column != CHECKSUM]
    rows = tuple(tuple(shown(run.value(column)) for column in columns) for run in runs)
    return Table("runs", f"All {len(runs)} runs", tuple(columns), rows)


def score_table(runs: Sequence[Run], labels: Sequence[str], headlines: bool = False) -> Table:
    """Return the scores of some runs, a column per run, those of metrics first; all of them, or the headlines."""
    names = dict.fromkeys(name for run in runs for name in run.scores if not headlines or "." not in name)
    ordered = sorted(names, key=lambda name: (name.split(".")[0] in TRAINING_SCORES, name))
    rows = tuple((name, *(shown(run.scores.get(name)) for run in runs)) for name in ordered)
    name, title = ("scores", "Headline scores") if headlines else ("all-scores", "All scores")
    return Table(name, title, ("Score", *labels), rows)


def setting_table(runs: Sequence[Run], labels: Sequence[str], differing: bool = False) -> Table:
    """Return the settings of some runs, a column per run; all of them, or those that differ."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    kept = [name for name in names if not differing or len({run.value(name) for run in runs}) > 1]
    rows = tuple((name, *(_setting(run.value(name)) for run in runs)) for name in kept)
    title = "Settings that differ" if differing else "All settings"
    return Table("run-settings", title, ("Setting", *labels), rows)


def _setting(value: Value) -> str:
    return "none" if value is None else shown(value)


def environment(runs: Sequence[Run]) -> dict[str, str]:
    """Return the versions that runs were trained with, and those that made this page."""
    import matplotlib

    import lddr

    versions = [", ".join(f"{name} {version}" for name, version in run.files.versions.items()) for run in runs]
    counts = Counter(text or "unknown" for text in versions)
    here = f"lddr {lddr.__version__}, python {platform.python_version()}, matplotlib {matplotlib.__version__}"
    here += f", {platform.system()} {platform.machine()}"
    return {text: _counted(count, "run") for text, count in counts.items()} | {"this page": here}
