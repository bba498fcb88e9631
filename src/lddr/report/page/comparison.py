"""Some models side by side: scores, the settings that differ, and figures."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lddr.errors import UserError
from lddr.report.exhibits import Missing
from lddr.report.figures.figure import card_figures
from lddr.report.groups import collect, unique
from lddr.report.loaded import LoadedRun
from lddr.report.page.card import scores_card
from lddr.report.page.html import Picture, Section, code_card, facts_card, missing_card, page, side_by_side, table_card
from lddr.report.page.pictures import pictures_of, write
from lddr.report.page.run_tables import environment, setting_table
from lddr.report.reproduce import compare_command
from lddr.report.titles import method_title
from lddr.runs.index import Run


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
