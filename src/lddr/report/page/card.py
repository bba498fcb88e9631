"""The card of one model: scores, curves, reconstructions, traversals, information."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lddr.errors import UserError
from lddr.report.drawing.traversals import animation
from lddr.report.exhibits import Missing
from lddr.report.figures.figure import card_figures
from lddr.report.groups import collect
from lddr.report.loaded import LoadedRun
from lddr.report.page.html import Picture, Section, code_card, facts_card, gallery, missing_card, page, table_card
from lddr.report.page.pictures import pictures_of, write
from lddr.report.page.run_tables import environment, score_table, setting_table, undefined_scores
from lddr.report.reproduce import commands, show_command
from lddr.report.titles import dataset_title, method_title
from lddr.runs.index import Run
from lddr.runs.pretrained import is_shipped

if TYPE_CHECKING:
    from lddr.data.dataset import Dataset

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
    write(folder / "index.html", _page(run, pictures, missing).encode(errors="replace"))
    return folder / "index.html", missing


def _page(run: Run, pictures: Sequence[Picture], missing: Missing) -> str:
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
