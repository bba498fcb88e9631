"""The claims of claims.toml, and the table of the paper's claims in a report."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from itertools import product
from statistics import mean
from typing import Any

from lddr.errors import UserError
from lddr.metrics.metric import SIX_METRICS, UndefinedError, disentanglement_metrics
from lddr.models import models
from lddr.report.exhibits import Number, Table, tables
from lddr.report.groups import Group, main_groups
from lddr.report.style import dataset_title, is_discrete, metric_title, model_title
from lddr.runs.index import Run
from lddr_paper import judging
from lddr_paper.comparisons import efficiencies
from lddr_paper.judging import FEWEST, MIXED, Case, Claim, Measured, Runs, judge
from lddr_paper.latent_figures import PARALLEL, axis_angle, grid_turn, space_of
from lddr_paper.published import DATASETS, LOOK_ALIKES, SELECTED_FROM, Departures, paper_results, paper_source
from lddr_paper.tables import COUNTED, MARKS, marks_of, with_notes

EVERY = ("circles", *DATASETS, *LOOK_ALIKES)  # datasets; our tables have circles, dsprites and rooms
ENTROPY = "category_entropy"  # a score of our tables
TITLES = {
    "kl.first": "KL in the first hundred steps",
    "kl": "KL at the end",
    ENTROPY: "entropy of the categories of 1,000 images, summed over latents",
}


@cache
def claims() -> dict[str, Claim]:
    """Return all claims of claims.toml by name, in their order."""
    entries = tomllib.loads((files("lddr_paper") / "claims.toml").read_text(encoding="utf-8"))
    return {name: _claim(entries.get(entry.get("like"), {}) | entry) for name, entry in entries.items()}


def _claim(entry: Mapping[str, Any]) -> Claim:
    own = {name: value for name, value in entry.items() if name in Claim.__dataclass_fields__ and name != "rule"}
    if entry.get("rule") == "cases won":
        won = paper_results()["claims"]["unregularized_cases_won_by_discrete"]
        own["rule"] = partial(judging.cases_won, won["won"] / won["of"])
    variants = entry.get("variants", {"": {}})
    cases = {name: tuple(_cases({**entry, **each})) for name, each in variants.items()}
    return Claim(**own | {"paper": entry.get("paper") or None, "cases": cases})


STATISTICS: dict[str, judging.Statistic] = {
    "difference": judging.difference,
    "lead growth": judging.lead_growth,
    "share within 10": partial(judging.share_within, PARALLEL),
    "share rising": judging.share_rising,
    "correlation": partial(judging.rank, 1),
    "correlation of small": partial(judging.rank, -1),
    "chosen": partial(judging.chosen_over_median, None, in_percent=False),
}


def _cases(entry: Mapping[str, Any]) -> Iterator[Case]:
    """Return a case for each combination of what an entry of claims.toml lists."""
    datasets: Sequence[str] = {"all": EVERY, "images": EVERY[1:]}.get(str(entry["datasets"]), entry["datasets"])
    named: dict[str, list[tuple[str, ...]]] = {
        "six": [(name,) for name in SIX_METRICS],
        "bias": [(name,) for name in (*SIX_METRICS, *TITLES)],
        "gap and all": [("gap", name) for name in disentanglement_metrics()],
        "six and efficiency": list(product(SIX_METRICS, efficiencies())),
    }
    scores: Sequence[Sequence[str]] = named.get(str(entry.get("scores")), entry.get("scores", [("mig",)]))
    counts: Sequence[int | None] = entry.get("label_counts", [None])
    for dataset, own, case, count in product(datasets, scores, entry.get("cases", [{}]), counts):
        whole = {**entry, **case}
        learner = efficiencies().get(own[-1])
        metric = next(name for name in own if name != "gap")
        titles = {
            "name": whole.get("name", f"{count or 0:,} labels"),
            "dataset": dataset_title(dataset) + (f", {learner}" if learner else ""),
            "metric": TITLES.get(metric) or metric_title(metric),
        }
        usual = ("metric", "dataset") if "crossed" in entry else ("dataset", "metric")
        yield Case(
            tuple(titles[name] for name in whole.get("cells", usual)),
            tuple(_runs(group, whole, dataset, count) for group in whole["groups"]),
            tuple(own),
            STATISTICS[whole.get("statistic", "difference")],
            whole.get("limit", 0.0),
            whole.get("counts", True) and entry.get("counted", metric) == metric,
        )


def _runs(group: Mapping[str, Any], entry: Mapping[str, Any], dataset: str, count: int | None) -> Runs:
    settings = {name: value for name, value in group.items() if name not in ("study", "model", "models")}
    settings |= entry.get("settings", {}) | ({"labels": count} if "supervision" in group else {})
    chosen = tuple(group.get("models", [group.get("model")]))
    return Runs(group.get("study", entry.get("study")), dataset, chosen, settings)


# ---- The table of a report: the paper's numbers outside its tables

MODEL = SELECTED_FROM[-1]  # the model whose medians these claims are about
GAIN, MEAN = "gain_over", "_percent_average"  # parts of names in paper_results.json
NOTES = (
    "The previous best is the best median of a model with continuous latents; the paper's 17 % is the mean over "
    "dSprites, C-dSprites and Cars3D",
    f"Parallel to the axes: the lines of the grid lie within {PARALLEL}° of an axis of their own (root mean square)",
    f"The verdict on a claim about several datasets is {MIXED} if they differ; it takes {FEWEST} runs of each model",
)


Summary = Callable[[Sequence[float]], float]


def reported_claims(datasets: Sequence[str]) -> list[tuple[Claim, Summary]]:
    """Return the claims that a report judges, each with how to summarise the percentages of several datasets."""
    said, title = paper_results()["claims"], model_title(MODEL)
    before, average = said[f"factor_dvae_{GAIN}_previous_best{MEAN}"], said[f"selection_{GAIN}_median{MEAN}"]
    worst = -said["selection_worst_loss_percent"]
    continuous = [model for model in models if not is_discrete(model)]
    best, chosen = [], []
    for name in datasets:
        own, *rivals = (Runs("", name, (model,)) for model in (MODEL, *continuous))
        best.append(Case((), (own,), ("mig",), judging.percent_gain, rivals=tuple(rivals)))
        gained = partial(judging.chosen_over_median, MODEL)
        chosen.append(Case((), (Runs("", name, SELECTED_FROM),), ("gap", "mig"), gained))
    not_worse = [replace(case, limit=worst) for case in chosen]
    found: list[tuple[Claim, Summary]] = [
        (Claim(f"{title} over the previous best, MIG, mean over datasets", before, {"": best}), mean),
        (Claim(f"Selection over the median {title}, MIG, mean over datasets", average, {"": chosen}), mean),
        (Claim(f"Selection over the median {title}, MIG, worst dataset", worst, {"": not_worse}), min),
    ]
    for case in reversed(claims()["circles_parallel"].cases["with bends"]):
        label = f"Latent spaces of the {case.labels[0]} on Circles parallel to the axes"
        paper = f"more than {case.limit}" if case.counts else None
        found.append((Claim(label, paper, {"": [replace(case, counts=True)]}), mean))
    return found


@tables.add("claims", "The paper's claims, in %", 15)
def claims_table(groups: Sequence[Group]) -> Table:
    """Return a row for each claim that can be checked with these runs."""
    main = {group.dataset: group for group in main_groups(groups)}
    runs = [with_angles(run) for group in main.values() for run in group.runs]
    found: Departures = {}
    rows = []
    for claim, summary in reported_claims(list(main)):
        if judgement := judge(claim, lambda *studies: runs):
            number = _number(judgement.found[""], summary, main, found)
            paper = Number(claim.paper) if isinstance(claim.paper, float | int) else claim.paper
            rows.append((claim.title, number, paper, judgement.verdicts[""] if paper else None))
    if not rows:
        raise UndefinedError(f"there are no runs of the {model_title(MODEL)} with a MIG, nor of models on circles")
    columns = ("Claim", "ours", "paper: text", "verdict")
    return with_notes(Table("", "", columns, tuple(rows), NOTES, source=paper_source()), COUNTED, found)


def _number(cases: Sequence[Measured], summary: Summary, main: Mapping[str, Group], found: Departures) -> Number:
    """Return the summary of all datasets, marked if it is not directly comparable with the paper's."""
    here: set[str] = set()
    for one in cases:
        used = main[one.case.groups[0].dataset].metric_settings.get("mig") if "mig" in one.case.scores else None
        here.update(marks_of([run for some in one.runs for run in some], "mig", used, found))
    marks = "".join(filter(here.__contains__, MARKS))
    count, fewest = sum(len(some) for one in cases for some in one.runs), min(one.estimate.runs for one in cases)
    return Number(summary([one.estimate.value for one in cases]), count=count, marks=marks, fewest=fewest)


def with_angles(run: Run) -> Run:
    """Return a run on Circles with the angles of its latent grid as scores, if it has two latents."""
    if run.value("dataset") == "circles" and "angle" not in run.scores:
        with suppress(UserError):
            points = space_of(run)
            return replace(run, scores=run.scores | {"angle": axis_angle(points), "turn": grid_turn(points)})
    return run
