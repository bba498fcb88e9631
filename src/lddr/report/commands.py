"""What `lddr report`, `lddr show` and `lddr compare` do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lddr.errors import UserError
from lddr.files import written_whole
from lddr.metrics.metric import UndefinedError
from lddr.report import contests, medians, redo
from lddr.report.collect import Collection, Group, collect, unique
from lddr.report.drawing import Missing, animation, drawn
from lddr.report.figures import figures, run_figures
from lddr.report.layout import card_page, comparison_page, many, report_page, some, told
from lddr.report.page import Picture
from lddr.report.style import method_title
from lddr.report.tables import Table, write_table
from lddr.runs.commands import find_run
from lddr.runs.filters import matching
from lddr.runs.index import Run, gather

BUILDERS: Mapping[str, Callable[[Sequence[Group]], Table]] = medians.TABLES | contests.TABLES


def make_report(roots: Sequence[Path], out: Path = Path("report"), where: Sequence[str] = ()) -> Path:
    """Write the tables and figures that the runs below some folders allow, and the page that shows them; gives it."""
    runs = gather(roots)
    if not runs:
        raise UserError(f"there are no runs below {', '.join(map(str, roots))}; train one with: lddr train")
    collection = collect(matching(runs, where))
    if not collection.groups:
        raise UserError(f"there is no finished run to report on ({told(collection.left_out)})")
    tables, missing = built(collection.groups)
    for table in tables:
        write_table(table, out / "tables")
    shown = [run for group in collection.main for run in group.runs]
    pictures, undrawn = drawn(figures, shown, out / "figures")
    missing |= {f"Figure: {title}": reason for title, reason in undrawn.items()}
    commands = [*redo.commands(collection.groups), redo.report_command(roots, out, where)]
    target = _write(out, report_page(collection, tables, pictures, missing, commands))
    _tell(collection, tables, pictures, missing)
    print(f"open {target}")
    return target


def built(groups: Sequence[Group]) -> tuple[list[Table], Missing]:
    """The tables that the groups allow, and what is missing for the others."""
    tables, missing = [], {}
    for title, build in BUILDERS.items():
        try:
            tables.append(build(groups))
        except UndefinedError as reason:
            missing[f"Table: {title}"] = str(reason)
    return tables, missing


def _tell(collection: Collection, tables: Sequence[Table], pictures: Sequence[Picture], missing: Missing) -> None:
    """On the console: what was compared, left out, made and missed."""
    for group in collection.groups:
        setup = ", ".join(f"{name} {group.setup.get(name)}" for name in ("steps", "precision", "resolution"))
        print(f"compared: {group.label}, {many(len(group.runs), 'run')} ({setup})")
    for reason, names in collection.left_out.items():
        print(f"left out: {some(names)}: {reason}")
    print(f"made: {many(len(tables), 'table')}, {many(len(pictures), 'figure')}")
    for title, reason in missing.items():
        print(f"missing: {title}: {reason}")


def show_run(text: str, out: Path | None = None, root: Path = Path("runs")) -> Path:
    """Write the card of one model: scores, curves, reconstructions, traversals, information; gives the page."""
    run = find_run(text, root)
    folder = out or run.folder / "card"
    pictures, missing = drawn(run_figures, run, folder / "figures")
    pictures += animation(run, folder / "figures")
    commands = [*redo.commands(collect([run]).groups), f"lddr show {run.folder}"]
    target = _write(folder, card_page(run, pictures, missing, commands))
    for title, reason in missing.items():
        print(f"missing: {title}: {reason}")
    print(f"open {target}")
    return target


def compare_runs(texts: Sequence[str], out: Path = Path("compare"), root: Path = Path("runs")) -> Path:
    """Write a page with the scores, settings and figures of some runs side by side; gives it."""
    runs = unique([find_run(text, root) for text in texts])
    if len(runs) < 2:
        raise UserError("give at least two different runs to compare; one alone is shown by: lddr show RUN")
    labels = [f"{method_title(run)}, seed {run.value('seed')} ({run.run})" for run in runs]
    kinds, missing = _kinds(runs, labels, out / "figures")
    commands = [redo.compare_command(runs, out)]
    target = _write(out, comparison_page(runs, labels, kinds, missing, commands))
    print(f"open {target}")
    return target


def _kinds(runs: Sequence[Run], labels: Sequence[str], folder: Path) -> tuple[list[list[Picture]], Missing]:
    """The figures of every run, those of one kind together."""
    kinds: dict[str, list[Picture]] = {}
    missing: Missing = {}
    for run, label in zip(runs, labels, strict=True):
        pictures, lacking = drawn(run_figures, run, folder, f"{run.run}-")
        for picture in pictures:
            kinds.setdefault(picture.title, []).append(replace(picture, title=f"{picture.title}: {label}"))
        missing |= {f"{title}: {label}": reason for title, reason in lacking.items()}
    return list(kinds.values()), missing


def _write(folder: Path, text: str) -> Path:
    target = folder / "index.html"
    with written_whole(target) as draft:
        draft.write_text(text, encoding="utf-8")
    return target
