"""The text of results/README.md: the template page.md with tables of numbers, none of which is typed by hand."""

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from itertools import combinations
from statistics import mean, median

from lddr.metrics.metric import SIX_METRICS
from lddr.report.groups import scores_of
from lddr.report.style import dataset_title, metric_title, model_order, model_title
from lddr.runs.index import Run
from lddr.sweeps.study import Study, read_study
from lddr_paper.claims import claims
from lddr_paper.judging import FEWEST, MIXED, SUPPORTED, TOO_FEW, Judgement, above, judge, markdown, matching, resampled
from lddr_paper.results import selection
from lddr_paper.results.tables import INFORMATION, LOGGED, LONG_SCORES, RESULTS, read_costs, read_long, read_runs

STUDIES = (
    *("circles", "families", "penalties", "labels", "ties"),
    *("beginnings", "brightness", "discrete", "efficiency", "choice"),
)
METRICS = (*SIX_METRICS, "infomec", "mig_sup", "explicitness")  # by which types of discreteness are compared
Scores = dict[str, dict[str, list[float]]]  # metric → model → a number for each run


def page() -> str:
    """Return the whole page."""
    found = {name: judge(claim, read_runs) for name, claim in claims().items()}
    judged = {name: _with_costs(one) if name == "total_correlation" else one for name, one in found.items() if one}
    parts = {
        "verdicts": _verdicts([*judged.values()], [name for name, one in found.items() if not one]),
        "runs": _runs(),
        "trained_again": _trained_again(),
        "claims": "\n\n".join(_section(one) for one in judged.values() if one.details),
        "gap_anchor": _anchor(_heading(judged["gap"])),
        "long": _long(),
        "initialisers": initialisers_table(),
    }
    text = (files("lddr_paper.results") / "page.md").read_text(encoding="utf-8")
    return text.format_map(parts | discreteness() | selection.sections())


def study_of(name: str) -> Study:
    return read_study(RESULTS / name / "study.toml")


# ---- Verdicts


def _verdicts(judged: list[Judgement], waiting: list[str]) -> str:
    lines = ["| claim | paper | here | verdict |", "| --- | --- | --- | --- |"]
    for one in judged:
        lines.append(f"| {one.claim.title} | {one.claim.paper or 'our hypothesis'} | {one.seen} | **{one.verdict}** |")
    return "\n".join([*lines, *["", f"No runs yet to judge: {', '.join(waiting)}."] * bool(waiting)])


def _with_costs(one: Judgement) -> Judgement:
    """Add the second half of a claim: that a step of the TC-DVAE takes less time than one of the FactorDVAE."""
    costs = read_costs()
    cheaper = costs["tc-dvae"] < costs["factor-dvae"]
    seen = f"{one.seen}; a step takes {costs['tc-dvae']:.0f} ms against {costs['factor-dvae']:.0f} ms"
    return replace(one, seen=seen, verdict=MIXED if one.verdict == SUPPORTED and not cheaper else one.verdict)


def _heading(one: Judgement) -> str:
    return f"{one.claim.title}: {one.verdict}" if len(one.found) == 1 else f"{one.claim.title} ({one.verdict})"


def _anchor(heading: str) -> str:
    return "#" + re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _section(one: Judgement) -> str:
    pictures = [f"![{one.claim.title}]({name})" for name in one.claim.pictures]
    return "\n\n".join([f"### {_heading(one)}", *one.details, *pictures])


# ---- Runs


def _runs() -> str:
    lines = ["| study | runs so far, of those planned | command |", "| --- | --- | --- |"]
    for study in STUDIES:
        about = tomllib.loads((RESULTS / study / "study.toml").read_text())["about"]
        counts = Counter((str(run.value("dataset")), str(run.value("model"))) for run in read_runs(study))
        each = ", ".join(f"{count} {model} on {dataset}" for (dataset, model), count in sorted(counts.items()))
        done = f"{sum(counts.values())} of {len(study_of(study).configs)}: {each}"
        command = f"lddr sweep results/{study}/study.toml --out runs/results"
        lines.append(f"| [{study}]({study}/scores.csv): {about} | {done} | `{command}` |")
    return "\n".join(lines)


def _trained_again() -> str:
    """Return the scores of runs before they were trained again: the same seed on another processor differs."""
    before = {run.name: (study, run) for study in reversed(STUDIES) for run in read_runs(study, file="replaced.csv")}
    kinds: dict[tuple[str, str, str], list[Run]] = {}
    for study, run in before.values():
        kinds.setdefault((study, str(run.value("dataset")), str(run.value("model"))), []).append(run)
    lines = []
    for (study, dataset, model), old in kinds.items():
        names = {run.name for run in old}
        now = [run for run in read_runs(study) if run.name in names]
        medians = " and ".join(f"{median(scores_of(runs, 'mig')):.3f}" for runs in (old, now))
        named = f"{model_title(model)} on {dataset_title(dataset)}, {len(old)} runs"
        lines.append(f"- {named}: {medians} ([the first]({study}/replaced.csv))")
    return "\n".join(lines)


# ---- Long runs


def _long() -> str:
    rows = []
    for (model, weights), steps in read_long().items():
        last = steps[-1]
        scores = [f"{float(last[name]):.3f}" for name in LONG_SCORES]
        nats = [f"{float(last[name]):.1f}" if name in last else "–" for name in (*LOGGED, INFORMATION)]
        rows.append((model_title(model), weights, f"{int(last['step']):,}", *scores, *nats))
    nats_header = ("reconstruction error", "KL", "information")
    return markdown(("model", "initial weights", "steps so far", *map(metric_title, LONG_SCORES), *nats_header), rows)


def initialisers_table() -> str:
    """Return the scores by initialisation of the weights, at the first and the last steps that both have reached."""
    found, rows = read_long(), []
    for model in sorted({model for model, _ in found}):
        both = list(zip(found.get((model, "truncated"), ()), found.get((model, "uniform"), ()), strict=False))
        seeds = scores_of(matching(read_runs("families"), "dsprites", model), "mig")
        for pair in (both[0], both[-1]) if len(both) > 1 else ():
            first, second = (float(one["mig"]) for one in pair)
            apart = median(abs(a - b) for a, b in combinations(seeds, 2))
            steps = " and ".join(f"{int(one['step']):,}" for one in pair)
            losses = " and ".join(f"{sum(float(one[name]) for name in LOGGED):.1f}" for one in pair)
            numbers = (f"{value:.3f}" for value in (first, second, abs(second - first), apart))
            rows.append((model_title(model), steps, *numbers, losses))
    header = ("model", "steps", "truncated", "uniform", "difference", "difference of two seeds", "losses")
    return markdown(header, rows)


# ---- Types of discreteness


def discreteness() -> dict[str, str]:
    """Return the medians of every model under one protocol, who leads by each metric, and whether a type wins."""
    runs = [run for run in read_runs("discrete") if run.value("supervision") is None]
    scores = {name: _scores(matching(runs, name)) for name in sorted({str(run.value("dataset")) for run in runs})}
    winners = [[_leader(able)[1] for able in some.values()] for some in scores.values()]
    best = {model for model in winners[0] if model and all(2 * own.count(model) >= len(own) for own in winners)}
    return {
        "discrete_winner": " and ".join(map(model_title, sorted(best))) + " wins" if best else "no type wins",
        "discrete_ranks": _ranks(scores),
        "discrete_datasets": "\n\n".join(_dataset(name, matching(runs, name), some) for name, some in scores.items()),
    }


def _scores(runs: list[Run]) -> Scores:
    """Return the scores by every metric that two models have, with at least two runs each."""
    models = sorted({str(run.value("model")) for run in runs}, key=model_order)
    found = {
        name: {model: scores_of([r for r in runs if r.value("model") == model], name) for model in models}
        for name in METRICS
    }
    able = {name: {model: values for model, values in some.items() if len(values) > 1} for name, some in found.items()}
    return {name: some for name, some in able.items() if len(some) > 1}


def _leader(able: Mapping[str, list[float]]) -> tuple[str, str | None]:
    """Return the model with the largest median and its lead, as a sentence, and its name if it wins."""
    first, second = sorted(able, key=lambda model: -median(able[model]))[:2]
    lead = resampled(above, able[first], able[second])
    wins = lead.verdict() == SUPPORTED
    certain = TOO_FEW if lead.runs < FEWEST else "wins" if wins else "uncertain"
    text = f"{model_title(first)} before {model_title(second)} by {lead.text()}: **{certain}**"
    return text, first if wins else None


def _ranks(scores: Mapping[str, Scores]) -> str:
    """Return every model's mean rank over metrics and datasets, and the cost of a step of it."""
    by_model = [{model for able in some.values() for model in able} for some in scores.values()]
    models = sorted(set.intersection(*by_model), key=model_order)
    ranks: dict[str, list[int]] = {model: [] for model in models}
    for able in (able for some in scores.values() for able in some.values() if able.keys() >= set(models)):
        for rank, model in enumerate(sorted(models, key=lambda model: -median(able[model])), start=1):
            ranks[model].append(rank)
    costs = read_costs()
    rows = [
        (
            *(model_title(model), f"{mean(ranks[model]):.1f}", str(ranks[model].count(1))),
            f"{costs[model]:.0f}" if model in costs else "–",
        )
        for model in sorted(models, key=lambda model: mean(ranks[model]))
    ]
    return markdown((f"{len(ranks[models[0]])} cases", "mean rank", "first in", "ms per step on dSprites"), rows)


def _dataset(dataset: str, runs: list[Run], scores: Scores) -> str:
    counts = Counter(str(run.value("model")) for run in runs)
    rows = [
        (
            model_title(model),
            str(counts[model]),
            *(f"{median(able[model]):.3f}" if model in able else "–" for able in scores.values()),
        )
        for model in sorted({model for able in scores.values() for model in able}, key=model_order)
    ]
    header = (f"{dataset_title(dataset)}, medians", "runs", *map(metric_title, scores))
    leaders = [f"- {metric_title(name)}: {_leader(able)[0]}" for name, able in scores.items()]
    return "\n".join([markdown(header, rows), "", *leaders])
