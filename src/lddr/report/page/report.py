"""The report of many runs: the paper's tables and figures as far as the runs allow, and how they were made."""

from collections.abc import Sequence
from pathlib import Path

from lddr.errors import UserError
from lddr.report.exhibits import Missing, made
from lddr.report.figures.comparisons import NAME
from lddr.report.figures.figure import figures
from lddr.report.groups import Collection, Reasons, collect
from lddr.report.page.html import (
    Picture,
    Section,
    code_card,
    facts_card,
    gallery,
    missing_card,
    page,
    table_card,
    table_cards,
)
from lddr.report.page.pictures import pictures_of, write
from lddr.report.page.run_tables import contents, environment, run_table, setup_table
from lddr.report.paper import paper_results
from lddr.report.reproduce import commands, report_command
from lddr.report.tables.formats import write_table
from lddr.report.tables.table import Table, tables
from lddr.report.titles import model_title
from lddr.runs.index import gather
from lddr.runs.tables import matching

SOME = 6  # names that a sentence lists


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
    write(out / "index.html", _page(found, shown, pictures, missing, again).encode(errors="replace"))
    return out / "index.html", _told(found, len(shown), len(pictures), missing)


def _page(
    found: Collection, shown: Sequence[Table], pictures: Sequence[Picture], missing: Missing, again: Sequence[str]
) -> str:
    settings = facts_card("Runs", contents(found.groups)) + table_card(setup_table(found.groups), downloads=False)
    lead, others = ([picture for picture in pictures if (picture.name == NAME) == first] for first in (True, False))
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
    source = f"The paper's numbers are from {paper_results()['paper']}."
    return page("Disentangled representations", _lead(found), sections, source)


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
