"""What stands on which page: the report of many runs, the card of one, and some side by side."""

from collections.abc import Sequence

from lddr.report import facts
from lddr.report.collect import Collection, Reasons, collect
from lddr.report.drawing import Missing
from lddr.report.page import (
    Picture,
    Section,
    code_card,
    facts_card,
    gallery,
    page,
    side_by_side,
    table_card,
    table_cards,
)
from lddr.report.paper import paper_results
from lddr.report.style import dataset_title, method_title, model_title
from lddr.report.tables import Table
from lddr.runs.index import Run

SOME = 6  # names that a sentence lists


def report_page(
    collection: Collection,
    tables: Sequence[Table],
    pictures: Sequence[Picture],
    missing: Missing,
    commands: Sequence[str],
) -> str:
    """Tables and figures of all runs, what is missing, and how it was made."""
    sections = [
        Section("Tables", table_cards(tables) if tables else ""),
        Section("Figures", _which_runs(collection) + gallery(pictures)),
        Section("What is missing", facts_card("", missing)),
        Section("Left out", facts_card("", {reason: some(names) for reason, names in collection.left_out.items()})),
        Section("Settings", _settings(collection)),
        Section("Runs", table_card(facts.run_table(collection.runs), tall=True)),
        Section("Environment", facts_card("", facts.environment(collection.runs))),
        Section("Do it again", code_card("Commands", commands)),
    ]
    source = f"The paper's numbers are from {paper_results()['paper']}."
    return page("Disentangled representations", _lead(collection), sections, source)


def _lead(collection: Collection) -> str:
    models = dict.fromkeys(model_title(str(run.value("model"))) for run in collection.runs)
    groups = "; ".join(f"{group.label} ({many(len(group.runs), 'run')})" for group in collection.groups)
    return f"{', '.join(models)} on {groups}. Only runs with the same dataset and settings are compared."


def _which_runs(collection: Collection) -> str:
    """Which runs the figures show, where that is not all of them."""
    others = [group.label for group in collection.groups if group not in collection.main]
    if not others:
        return ""
    shown = "; ".join(group.label for group in collection.main)
    told = f"{'; '.join(others)} (for figures of these alone, choose them with --where)"
    return facts_card("", {"In the figures": shown, "Not in the figures": told}, warning=True)


def _settings(collection: Collection) -> str:
    models = facts_card("Runs", facts.contents(collection.groups))
    return models + table_card(facts.setup_table(collection.groups), downloads=False)


def card_page(run: Run, pictures: Sequence[Picture], missing: Missing, commands: Sequence[str]) -> str:
    """One model: scores, figures, settings."""
    undefined = facts_card("Scores without a value", facts.undefined_scores(run))
    sections = [
        Section("Scores", _scores([run], ["Value"]) + undefined),
        Section("Figures", gallery(pictures)),
        Section("What is missing", facts_card("", missing)),
        Section("Settings", table_card(facts.setting_table([run], ["Value"]), downloads=False)),
        Section("Environment", facts_card("", facts.environment([run]))),
        Section("Do it again", code_card("Commands", commands)),
    ]
    title = f"{method_title(run)} on {dataset_title(str(run.value('dataset')))}"
    return page(title, f"{run.name}, {_state(run)}", sections)


def comparison_page(
    runs: Sequence[Run],
    labels: Sequence[str],
    kinds: Sequence[Sequence[Picture]],
    missing: Missing,
    commands: Sequence[str],
) -> str:
    """Some models side by side, with a warning where their scores do not mean the same."""
    sections = [
        Section("Scores", _warning(runs) + _scores(runs, labels)),
        Section("Settings", table_card(facts.setting_table(runs, labels, differing=True), downloads=False)),
        Section("Figures", "".join(map(side_by_side, kinds))),
        Section("What is missing", facts_card("", missing)),
        Section("Environment", facts_card("", facts.environment(runs))),
        Section("Do it again", code_card("Commands", commands)),
    ]
    return page(f"{len(runs)} models compared", "; ".join(labels), sections)


def _scores(runs: Sequence[Run], labels: Sequence[str]) -> str:
    """The headline scores, and all of them to unfold."""
    if not any(run.scores for run in runs):
        return facts_card("", {"No scores yet": "get them with: lddr evaluate RUN"})
    more = table_card(facts.score_table(runs, labels), downloads=False, tall=True)
    headlines = table_card(facts.score_table(runs, labels, headlines=True))
    return f"{headlines}<details><summary>All numbers</summary>{more}</details>"


def _warning(runs: Sequence[Run]) -> str:
    """In which settings runs differ that must not differ when scores are compared."""
    groups = collect([run for run in runs if run.state == "finished"]).groups
    if len(groups) < 2:
        return ""
    names = dict.fromkeys(name for group in groups for name in group.setup)
    differing = [name for name in names if len({group.setup.get(name) for group in groups}) > 1]
    told = f"they differ in {', '.join(differing)}, so a better score may come from that alone"
    return facts_card("", {"These runs are not comparable": told}, warning=True)


def _state(run: Run) -> str:
    states = {"finished": "trained to the end", "training": "not trained to the end yet"}
    return states.get(run.state, f"broken: {run.reason}")


def told(reasons: Reasons) -> str:
    """What was left out and why, as one sentence."""
    return "; ".join(f"{some(names)}: {reason}" for reason, names in reasons.items()) or "none is left"


def some(names: Sequence[str]) -> str:
    """The first of many names."""
    return ", ".join(names[:SOME]) + (f" and {len(names) - SOME} more" if len(names) > SOME else "")


def many(count: int, word: str) -> str:
    """A number and its noun."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
