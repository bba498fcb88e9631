"""The claims of claims.toml, what explains their verdicts, and the table of the paper's claims in a report."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from itertools import product
from statistics import mean, median
from typing import Any

import numpy as np

from lddr.errors import UserError
from lddr.metrics.metric import SIX_METRICS, UndefinedError, disentanglement_metrics
from lddr.models import models
from lddr.report.exhibits import Number, Table, tables
from lddr.report.groups import Group, main_groups, scores_of
from lddr.report.style import dataset_title, is_discrete, metric_title, model_title
from lddr.runs.index import Run, Value
from lddr.selection.selectors import all_but_seed
from lddr_paper import judging
from lddr_paper.comparisons import efficiencies, methods, standings
from lddr_paper.judging import (
    FEWEST,
    MIXED,
    Blocks,
    Case,
    Claim,
    Estimate,
    Measured,
    Rows,
    Runs,
    column,
    judge,
    matching,
)
from lddr_paper.latent_figures import PARALLEL, axis_angle, grid_turn, space_of
from lddr_paper.published import (
    DATASETS,
    LOOK_ALIKES,
    SELECTED_FROM,
    Departures,
    departures,
    paper_results,
    paper_source,
)
from lddr_paper.tables import COUNTED, MARKS, with_notes

EVERY = ("circles", *DATASETS, *LOOK_ALIKES)  # datasets; our tables have circles, dsprites and rooms
WITH_GAP = "families penalties choice"  # the studies whose runs the claims about the gap are judged by
ENTROPY = "category_entropy"  # a score of our tables
TIED, FREE = "tied.", "free."  # prefixes of scores of latents that are tied to a labelled factor, or to none
TITLES = {
    "kl.first": "KL in the first hundred steps",
    "kl": "KL at the end",
    ENTROPY: "entropy of the categories of 1,000 images, summed over latents",
}
METHODS = {
    "VAE, BCE": ("vae", "bce"),
    "VAE, L2": ("vae", "l2"),
    "D-VAE, cross-entropy": ("dvae", "cross-entropy"),
    "D-VAE, masked": ("dvae", "masked"),
}
CHANGES: dict[str, dict[str, Value]] = {
    "mean-brightness bias": {"mean_bias": "true"},
    "risk of one image, ω = 16": {"risk_of": "image", "omega": 16},
}
WINS = "Share of {} cases, in percent, in which a method is best (a case is a metric; ties are shared):"
WHY_LABELS = """\
Explanation, looked for after the verdict with 1,000 labels was known: the median information, in nats, about a factor
in the latent tied to it, and the largest in any one of the latents tied to no factor. The MIG subtracts the second
largest."""
OBSTACLES = """\
Two possible obstacles for the D-VAE, removed one at a time: latents that settle on one category because the images are
dark, and labels that are memorised because the risk of 64 images weighs much. By the rule of verdicts, which was fixed
before these runs, an obstacle is confirmed if the MIG becomes larger without it."""


@cache
def claims() -> dict[str, Claim]:
    """Return all claims of claims.toml by name, in their order."""
    entries = tomllib.loads((files("lddr_paper") / "claims.toml").read_text(encoding="utf-8"))
    alike = {name: entries.get(entry.get("like"), {}) | entry for name, entry in entries.items()}
    explained = {"gap": gap_within_types, "labels": labels_explained, "sample_efficiency": few_or_many}
    explained |= {"training": training_medians}
    return {name: _claim(entry, explained.get(name, lambda rows: [])) for name, entry in alike.items()}


def _claim(entry: Mapping[str, Any], explained: Callable[[Rows], Blocks]) -> Claim:
    own = {name: value for name, value in entry.items() if name in Claim.__dataclass_fields__}
    own |= {"paper": entry.get("paper") or None, "explained": explained}
    variants = entry.get("variants", {"": {}})
    if entry.get("rule") == "cases won":
        won = paper_results()["claims"]["unregularized_cases_won_by_discrete"]
        own["verdict"] = partial(judging.cases_won, won["won"] / won["of"])
    return Claim(**own | {"cases": {name: tuple(_cases({**entry, **each})) for name, each in variants.items()}})


STATISTICS: dict[str, judging.Statistic] = {
    "difference": judging.difference,
    "gain": judging.percent_gain,
    "lead growth": judging.lead_growth,
    "share within 10": partial(judging.share_within, PARALLEL),
    "share rising": judging.share_rising,
    "correlation": partial(judging.rank, 1),
    "correlation of small": partial(judging.rank, -1),
    "chosen": partial(judging.chosen_over_median, None),
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
            "name": whole.get("name", str(count)),
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


# ---- What explains the verdicts


def gap_within_types(rows: Rows) -> Blocks:
    """Return the correlations over pooled runs, and within types of models, also with types that are not claimed."""
    scores = {"mig": "MIG", "sap": "SAP", "dci.disentanglement": "DCI, disentanglement"}
    scores |= {"dci.completeness": "DCI, completeness", "modularity": "Modularity"}
    cells = []
    for dataset, (score, title) in product(("dsprites", "rooms"), scores.items()):
        claimed = Runs(WITH_GAP, dataset, SELECTED_FROM).among(rows, ("gap", score))
        others = Runs(f"{WITH_GAP} brightness", dataset, (*SELECTED_FROM, "tc-dvae", "beta-dvae"))
        more, pooled = others.among(rows, ("gap", score)), judging.rank(-1, ("gap", score), claimed)
        found = pooled, _within_types(claimed, score), _within_types(more, score)
        cells.append((dataset_title(dataset), title, *("–" if one is None else one.text(2) for one in found)))
    header = ("dataset", "score", "pooled", "within types", "within types, more types")
    return [judging.markdown(header, cells)]


def _within_types(runs: Sequence[Run], score: str) -> Estimate | None:
    types: dict[object, list[tuple[float, float]]] = {}
    for run in runs:
        types.setdefault(all_but_seed(run), []).append((-run.scores["gap"], run.scores[score]))
    groups = [np.array(some) for some in types.values() if len(some) >= FEWEST]
    return judging.correlation_within(groups) if groups else None


def labelled(rows: Rows) -> list[Group]:
    """Return the runs with labels, as figures of reports take them."""
    return [Group("dsprites", tuple(rows("labels")), {"dataset": "dsprites"})]


def labels_explained(rows: Rows) -> Blocks:
    """Return shares of wins (the paper's Figure 7), and what latents encode of factors whose labels they have."""
    found, titles = standings(labelled(rows)), methods(labelled(rows))
    header = ("method", *(f"{one.labels} labels, {one.rule}" for one in found))
    shares = [(title, *(f"{one.shares.get(name, 0):.0f}" for one in found)) for name, title in titles.items()]
    blocks = [WINS.format(found[0].cases), judging.markdown(header, shares)]
    rows_of_methods = []
    for count, (title, (model, loss)) in product((100, 1000), METHODS.items()):
        runs = matching(rows("labels"), "dsprites", model, supervision=loss, labels=count)
        if cells := _information(runs):
            rows_of_methods.append((title, str(count), *cells.values()))
            header = ("method", "labels", *cells)
    if rows_of_methods:
        blocks += [WHY_LABELS, judging.markdown(header, rows_of_methods), *_obstacles(rows)]
    return blocks


def _obstacles(rows: Rows) -> Blocks:
    """Return the masked D-VAE without what may keep it from using its labels."""
    masked: dict[str, Value] = {"supervision": "masked", "labels": 1000}
    usual = Runs("labels", "dsprites", ("dvae",), masked)
    groups = {title: (usual, Runs("ties", "dsprites", ("dvae",), masked | change)) for title, change in CHANGES.items()}
    cases = [Case((title,), both, ("mig",), judging.difference) for title, both in groups.items()]
    found = [one for case in cases if (one := judging.measure(case, rows))]
    if not found:
        return []
    before = found[0].runs[0]
    cells = [("as above", found[0].medians()[0], "", str(len(before)), "", *_information(before).values())]
    for one in found:
        changed = one.runs[1]
        told = one.medians()[1], one.estimate.text(), str(len(changed)), one.verdict
        cells.append((one.case.labels[0], *told, *_information(changed).values()))
    header = ("D-VAE, masked, 1,000 labels", "MIG", "gain", "runs", "verdict", *_information(before))
    return [OBSTACLES, judging.markdown(header, cells)]


def _information(runs: Sequence[Run]) -> dict[str, str]:
    """Return factor → the median nats about it in the latent tied to it, and the most in a latent tied to none."""
    known = [run for run in runs if any(name.startswith(TIED) for name in run.scores)]
    factors = [name.removeprefix(TIED) for run in known[:1] for name in run.scores if name.startswith(TIED)]
    pairs = {name: [median(scores_of(known, kind + name)) for kind in (TIED, FREE)] for name in factors}
    return {name: " and ".join(f"{value:.2f}" for value in pair) for name, pair in pairs.items()}


def few_or_many(rows: Rows) -> Blocks:
    """Return the correlations of MIG and of the efficiency with the accuracies that the efficiency is the ratio of."""
    cells = []
    for dataset, (score, learner) in product(EVERY[1:], efficiencies().items()):
        if known := Runs("efficiency", dataset, ("dvae",)).among(rows, ("mig", score)):
            ratio, many = column(known, score), column(known, score.removesuffix(".efficiency"))
            pairs = ((ratio, many), (column(known, "mig"), many), (column(known, "mig"), many * ratio))
            texts = [judging.rank_correlation(*pair).text(2) for pair in pairs]
            cells.append((f"{dataset_title(dataset)}, {learner}", *texts))
    header = ("ratio, accuracy from 10,000", "MIG, accuracy from 10,000", "MIG, accuracy from 100")
    return [judging.markdown(("dataset and learner", *header), cells)]


def training_medians(rows: Rows) -> Blocks:
    """Return the medians of the scores that rise or fall during training."""
    names = {"kl": "KL", "gap.confidence": "confidence", "reconstruction": "reconstruction error"}
    scores = [score for name in names for score in (f"{name}.first", name)]
    cells = []
    for dataset in EVERY:
        if known := Runs("circles families", dataset, ("dvae",)).among(rows, scores):
            medians = [f"{float(f'{median(column(known, score)):.3g}'):,g}" for score in scores]
            cells.append((dataset_title(dataset), *medians))
    header = [f"{name} {when}" for name in names.values() for when in ("at first", "at the end")]
    return [judging.markdown(("dataset", *header), cells)]


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
    for case in reversed(claims()["circles_parallel"].cases["lines"]):
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
            rows.append((claim.title, number, paper, judgement.verdict if paper else None))
    if not rows:
        raise UndefinedError(f"there are no runs of the {model_title(MODEL)} with a MIG, nor of models on circles")
    columns = ("Claim", "ours", "paper: text", "verdict")
    return with_notes(Table("", "", columns, tuple(rows), NOTES, source=paper_source()), COUNTED, found)


def _number(cases: Sequence[Measured], summary: Summary, main: Mapping[str, Group], found: Departures) -> Number:
    """Return the summary of all datasets, marked if it is not directly comparable with the paper's."""
    here: Departures = {}
    for one in cases:
        used = main[one.case.groups[0].dataset].metric_settings.get("mig") if "mig" in one.case.scores else None
        for mark, what in departures([run for some in one.runs for run in some], "mig", used).items():
            here.setdefault(mark, {}).update(what)
            found.setdefault(mark, {}).update(what)
    marks = "".join(mark for mark in MARKS if mark in here)
    count, fewest = sum(len(some) for one in cases for some in one.runs), min(one.estimate.runs for one in cases)
    return Number(summary([one.estimate.value for one in cases]), count=count, marks=marks, fewest=fewest)


def with_angles(run: Run) -> Run:
    """Return a run on Circles with the angles of its latent grid as scores, if it has two latents."""
    if run.value("dataset") == "circles" and "angle" not in run.scores:
        with suppress(UserError):
            points = space_of(run)
            return replace(run, scores=run.scores | {"angle": axis_angle(points), "turn": grid_turn(points)})
    return run
