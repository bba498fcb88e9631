"""The claims of the paper and hypotheses of our own, as data, and the table of the paper's claims in a report."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import product
from statistics import mean, median

import numpy as np

from lddr.errors import UserError
from lddr.metrics.metric import SIX_METRICS, UndefinedError, disentanglement_metrics
from lddr.models import models
from lddr.report.exhibits import Number, Table, tables
from lddr.report.groups import Group, main_groups, scores_of
from lddr.report.style import dataset_title, is_discrete, metric_title, model_title
from lddr.report.traversals import space_of
from lddr.runs.index import Run, Value
from lddr.selection.selectors import all_but_seed
from lddr_paper.comparisons import efficiencies, methods, standings
from lddr_paper.judging import (
    CONTRADICTED,
    FEWEST,
    MIXED,
    SUPPORTED,
    TOO_FEW,
    Case,
    Claim,
    Estimate,
    Lines,
    Measured,
    Rows,
    Runs,
    chosen_over_median,
    column,
    compared,
    correlation_within,
    crossed,
    difference,
    each_seen,
    first_seen,
    judge,
    lead_growth,
    markdown,
    matching,
    measure,
    percent_gain,
    rank,
    rank_correlation,
    share_rising,
    share_within,
)
from lddr_paper.latent_figures import PARALLEL, axis_angle, grid_turn
from lddr_paper.published import (
    DATASETS,
    LOOK_ALIKES,
    SELECTED_FROM,
    Departures,
    departures,
    paper_mig,
    paper_results,
    paper_source,
    paper_supervised,
)
from lddr_paper.tables import COUNTED, MARKS, with_notes

VAES, FACTOR = ("vae", "dvae"), ("factor-vae", "factor-dvae")
EVERY = ("circles", *DATASETS, *LOOK_ALIKES)  # datasets; our tables have circles, dsprites and rooms
WITH_GAP = "families penalties choice"  # the studies whose runs the claims about the gap are judged by
USUAL, BRIGHT = "default bias", "mean-brightness bias"  # initialisation of the decoder's output
BRIGHT_DSPRITES = f"{BRIGHT}, dSprites"
DARK: dict[str, Value] = {"mean_bias": "false"}
LIGHT: dict[str, Value] = {"mean_bias": "true"}
ENTROPY = "category_entropy"  # of the likeliest categories over 1,000 images, summed over latents
TIED, FREE = "tied.", "free."  # prefixes of scores of latents that are tied to a labelled factor, or to none
COUNTS = (100, 1000)  # labels
METHODS = {
    "VAE, BCE": ("vae", "bce"),
    "VAE, L2": ("vae", "l2"),
    "D-VAE, cross-entropy": ("dvae", "cross-entropy"),
    "D-VAE, masked": ("dvae", "masked"),
}
CHANGES: dict[str, dict[str, Value]] = {
    BRIGHT: LIGHT,
    "risk of one image, ω = 16": {"risk_of": "image", "omega": 16},
}
RISING = ("kl.first", "kl", "gap.confidence.first", "gap.confidence", "reconstruction", "reconstruction.first")
WHY_GAP = """\
Explanation, looked for after the verdict was known: every model type has its own range of gaps, so correlations depend
on which types are pooled. Below are the same correlations with runs ranked within their type (a model with its
settings), and the same again with TC-DVAEs, β-DVAEs and decoders with a mean-brightness bias added:"""
WHY_EFFICIENCY = """\
Sample efficiency is a ratio, the accuracy from 100 labels over that from 10,000, so a model that gains much from many
labels has a small one. These rank correlations separate few labels from many; they were added after the verdict was
known:"""
WHY_TRAINING = """\
"At first" is the mean over the first hundred steps, and for the confidence its value before the first step. On
`dsprites` the KL is already large by then and falls before it rises: on
[dark images](../docs/training.md#dark-and-light-images) all latents first settle on one category, and the part of the
KL that some models keep of this until the end carries no information."""
WINS = "Share of {} cases, in percent, in which a method is best (a case is a metric; ties are shared):"
WHY_LABELS = """\
Explanation, looked for after the verdict with 1,000 labels was known: the median information, in nats, about a factor
in the latent tied to it, and the largest in any one of the latents tied to no factor. The MIG subtracts the second
largest."""
OBSTACLES = """\
Two possible obstacles for the D-VAE, removed one at a time: latents that settle on one category because the images are
dark, and labels that are memorised because the risk of 64 images weighs much. By the rule of verdicts, which was fixed
before these runs, an obstacle is confirmed if the MIG becomes larger without it."""


def said(name: str) -> float:
    return paper_results()["claims"][name]


@cache
def claims() -> dict[str, Claim]:
    """Return all claims by name, in the order of the results page."""
    return _circles() | _models() | _gap() | _labels() | _learning()


def _pair(studies: str, dataset: str, pair: Sequence[str], **settings: Value) -> tuple[Runs, ...]:
    return tuple(Runs(studies, dataset, (model,), settings) for model in pair)


def _better(
    studies: str, metrics: Sequence[str], datasets: Sequence[str], pair: Sequence[str], **settings: Value
) -> tuple[Case, ...]:
    """Return a case for each dataset and metric: whether the second model's median is above the first's."""
    return tuple(
        Case((dataset_title(name), metric_title(metric)), _pair(studies, name, pair, **settings), (metric,), difference)
        for name, metric in product(datasets, metrics)
    )


def _first_counts(cases: Sequence[Case]) -> tuple[Case, ...]:
    return tuple(replace(case, counts=place == 0) for place, case in enumerate(cases))


def _ahead(pair: Sequence[str]) -> Callable[[Sequence[Measured]], Lines]:
    return compared("dataset", "metric", *map(model_title, pair), ahead=f"lead of the {model_title(pair[1])}")


MEDIAN_MIG = first_seen("median MIG {estimate}; {count} runs")


def _circles() -> dict[str, Claim]:
    angles = {"lines": "angle", "ignoring bends": "turn"}
    least = said("circles_axis_parallel_share_discrete_percent_more_than")

    def parallel_table(found: Sequence[Measured]) -> Lines:
        middle = [median(column(one.runs[0], one.case.scores[0])) for one in found]
        rows = [
            (one.case.labels[0], one.count, one.estimate.text(0, " %", ""), f"{angle:.1f}°")
            for one, angle in zip(found, middle, strict=True)
        ]
        return markdown(("model", "runs", f"within {PARALLEL}°", "median"), rows)

    def parallel_seen(found: Sequence[Measured]) -> str:
        return ", ".join(f"{one.estimate.text(0, ' %', '')} of {one.count} {one.case.labels[0]}s" for one in found)

    return {
        "circles parallel": Claim(
            "Many discrete latent spaces of Circles are axis-aligned",
            f"more than {least} % of the D-VAEs",
            {
                name: (replace(_parallel("dvae", score), limit=least), replace(_parallel("vae", score), counts=False))
                for name, score in angles.items()
            },
            parallel_seen,
            table=parallel_table,
            pictures=("circles/circles.png", "circles/circles-vae.png", "circles/circles-dvae.png"),
        ),
        "circles rotated": Claim(
            "Gaussian latent spaces of Circles are rotated further away from the axes",
            "even the best Gaussian spaces are rotated",
            {
                name: (Case((), _pair("circles", "circles", ("dvae", "vae")), (score,), difference),)
                for name, score in angles.items()
            },
            first_seen("median angle {estimate} larger; {count} runs", 1, "°"),
        ),
        "circles scores": Claim(
            "On Circles the D-VAE has the larger MIG",
            "pictures only",
            {"": _first_counts(_better("circles", ("mig", "dci"), ("circles",), VAES))},
            MEDIAN_MIG,
            table=_ahead(VAES),
        ),
    }


def _parallel(model: str, score: str) -> Case:
    """Return the case of the share of runs on Circles whose grid lies within ten degrees of the axes."""
    return Case((model_title(model),), _pair("circles", "circles", (model,)), (score,), partial(share_within, PARALLEL))


def _models() -> dict[str, Claim]:
    won = paper_results()["claims"]["unregularized_cases_won_by_discrete"]

    def cases_won(found: Sequence[Measured]) -> tuple[int, int]:
        return sum(one.estimate.value > 0 for one in found), len(found)

    def won_verdict(found: Sequence[Measured]) -> str:
        count, cases = cases_won(found)
        if min(one.estimate.runs for one in found) < FEWEST:
            return TOO_FEW
        return SUPPORTED if count / cases >= won["won"] / won["of"] else CONTRADICTED if 2 * count < cases else MIXED

    both = {USUAL: ("families", EVERY[1:], DARK), BRIGHT_DSPRITES: ("brightness", ("dsprites",), LIGHT)}
    gains = paper_results()["claims"]["unregularized_mig_median_gain_percent"]
    tc_pair = ("factor-dvae", "tc-dvae")
    return {
        "six metrics": Claim(
            "The D-VAE is ahead of the VAE by most metrics",
            f"in {won['won']} of {won['of']} cases",
            {name: _better(study, SIX_METRICS, datasets, VAES, **own) for name, (study, datasets, own) in both.items()},
            lambda found: "in {} of {} cases".format(*cases_won(found)),
            won_verdict,
            _ahead(VAES),
            pictures=("families/metrics.png",),
        ),
        "mig gain": Claim(
            "On dSprites the D-VAE's median MIG is far above the VAE's",
            f"+{gains['dsprites']} %",
            {
                name: (Case((), _pair(study, "dsprites", VAES, **own), ("mig",), percent_gain),)
                for name, (study, _, own) in both.items()
            },
            first_seen("{estimate}, {count} runs", 0, " %"),
        ),
        "weights": _lead_grows(
            "On dSprites the D-VAE's lead in MIG is larger with torch's default weight initialisation",
            "not mentioned; the authors use truncated-normal weights",
            {
                "truncated-normal weights": _pair("beginnings", "dsprites", VAES, initialiser="truncated"),
                "torch's default weights": _pair("families", "dsprites", VAES, initialiser="uniform"),
            },
        ),
        "brightness lead": _lead_grows(
            "On dSprites the D-VAE's lead in MIG is larger with a mean-brightness bias",
            None,
            {
                USUAL: _pair("families", "dsprites", VAES, **DARK),
                BRIGHT: _pair("brightness", "dsprites", VAES, **LIGHT),
            },
        ),
        "brightness": _brighter("dvae", "families"),
        "factor brightness": _brighter("factor-dvae", "penalties", gamma=10),
        "total correlation brightness": _brighter("tc-dvae", "penalties", beta=4),
        "factor": Claim(
            "FactorDVAE has a larger MIG than FactorVAE on dSprites",
            "21.7 % against 17.4 %",
            {
                USUAL: _first_counts(_better("penalties", ("mig", "dci"), ("dsprites",), FACTOR, **DARK)),
                BRIGHT_DSPRITES: _first_counts(_better("brightness", ("mig", "dci"), ("dsprites",), FACTOR, **LIGHT)),
            },
            MEDIAN_MIG,
            table=_ahead(FACTOR),
        ),
        "total correlation": Claim(
            "TC-DVAE has a larger MIG than FactorDVAE on dSprites, at a lower cost",
            None,
            {"": _first_counts(_better("penalties", ("mig", "dci"), ("dsprites",), tc_pair, **DARK))},
            MEDIAN_MIG,
            table=_ahead(tc_pair),
            pictures=("scores.png",),
        ),
    }


def _lead_grows(title: str, paper: str | None, kinds: dict[str, tuple[Runs, ...]]) -> Claim:
    """Return the claim that the D-VAE's lead over the VAE is larger among the second kind of runs than the first."""
    leads = [Case((name,), pair, ("mig",), difference, counts=False) for name, pair in kinds.items()]
    growth = Case((), sum(kinds.values(), ()), ("mig",), lead_growth)

    def seen(found: Sequence[Measured]) -> str:
        each = ", ".join(f"{one.estimate.text()} with {one.case.labels[0]}" for one in found[1:])
        return f"lead of the D-VAE {each}; difference {found[0].estimate.text()}"

    table = compared("models", *map(model_title, VAES), ahead="lead of the D-VAE")
    return Claim(title, paper, {"": (growth, *leads)}, seen, table=table)


def _brighter(model: str, study: str, **settings: Value) -> Claim:
    """Return the claim that a model has a larger MIG with `--mean-bias`; other scores are reported."""
    titles = {name: metric_title(name) for name in SIX_METRICS}
    titles |= {"kl.first": "KL in the first hundred steps", "kl": "KL at the end"}
    titles |= {ENTROPY: "entropy of the categories of 1,000 images, summed over latents"}
    groups = (
        Runs(study, "dsprites", (model,), DARK | settings),
        Runs("brightness", "dsprites", (model,), LIGHT | settings),
    )
    cases = [Case((title,), groups, (name,), difference, counts=name == "mig") for name, title in titles.items()]
    return Claim(
        f"A {model_title(model)} on dSprites has a larger MIG with a mean-brightness bias",
        None,
        {"": tuple(cases)},
        MEDIAN_MIG,
        table=compared("score", USUAL, BRIGHT, ahead="difference of medians", judged=False),
    )


def _gap() -> dict[str, Claim]:
    where = {name: Runs("circles" if name == "circles" else WITH_GAP, name, SELECTED_FROM) for name in EVERY}
    small = partial(rank, -1)
    cases = [
        Case((metric_title(metric), dataset_title(name)), (runs,), ("gap", metric), small, counts=metric == "mig")
        for metric, (name, runs) in product(disentanglement_metrics(), where.items())
    ]
    chosen = [
        Case((dataset_title(name),), (runs,), ("gap", "mig"), partial(chosen_over_median, None))
        for name, runs in where.items()
    ]
    average = said("selection_gain_over_median_percent_average")
    return {
        "gap": Claim(
            "A small gap goes with disentanglement",
            "negatively correlated with the metrics on most datasets",
            {"": tuple(cases)},
            lambda found: "rank correlation with MIG " + each_seen("{estimate} on {label}", 2, ", ")(found),
            table=crossed("metric"),
            explained=_gap_within_types,
        ),
        "choice by gap": Claim(
            "Choosing by the gap beats the median model",
            f"+{average} % MIG on average over datasets",
            {"": tuple(chosen)},
            _on_average,
            table=compared("dataset", ahead="MIG of the choice over the median", digits=0, unit=" %", medians=False),
        ),
    }


def _on_average(found: Sequence[Measured]) -> str:
    return f"{mean(one.estimate.value for one in found):+.0f} % on average over {len(found)} datasets".replace("-", "−")


def _gap_within_types(rows: Rows) -> Lines:
    """Return the correlations over pooled runs, and within types of models, also with types that are not claimed."""
    scores = {"mig": "MIG", "sap": "SAP", "dci.disentanglement": "DCI, disentanglement"}
    scores |= {"dci.completeness": "DCI, completeness", "modularity": "Modularity"}
    cells = []
    for dataset, (score, title) in product(("dsprites", "rooms"), scores.items()):
        claimed = Runs(WITH_GAP, dataset, SELECTED_FROM).among(rows, ("gap", score))
        more = Runs(f"{WITH_GAP} brightness", dataset, (*SELECTED_FROM, "tc-dvae", "beta-dvae")).among(
            rows, ("gap", score)
        )
        pooled = rank(-1, ("gap", score), claimed)
        found = pooled, _within_types(claimed, score), _within_types(more, score)
        cells.append((dataset_title(dataset), title, *("–" if one is None else one.text(2) for one in found)))
    header = ("dataset", "score", "pooled", "within types", "within types, more types")
    return ["", WHY_GAP, "", *markdown(header, cells)]


def _within_types(runs: Sequence[Run], score: str) -> Estimate | None:
    types: dict[object, list[tuple[float, float]]] = {}
    for run in runs:
        types.setdefault(all_but_seed(run), []).append((-run.scores["gap"], run.scores[score]))
    groups = [np.array(some) for some in types.values() if len(some) >= FEWEST]
    return correlation_within(groups) if groups else None


def _labels() -> dict[str, Claim]:
    def runs(method: str, labels: int) -> Runs:
        if method not in METHODS:
            return Runs("families", "dsprites", ("dvae",))
        model, loss = METHODS[method]
        return Runs("labels", "dsprites", (model,), {"supervision": loss, "labels": labels})

    def claim(title: str, paper: str, *names: str) -> Claim:
        cases = [Case((str(n),), tuple(runs(name, n) for name in names), ("mig",), difference) for n in COUNTS]
        ahead = "lead over the better one" if len(names) > 2 else "lead"
        seen = each_seen("{label} labels: median MIG {estimate}")
        return Claim(title, paper, {"": tuple(cases)}, seen, table=compared("labels", *names, ahead=ahead))

    def percent(number: Number | None) -> str:
        return "–" if number is None else f"{number.value:.1f} %"

    plain, masked = (percent(paper_supervised("dvae", loss, 1000, "dsprites")) for loss in ("cross-entropy", "masked"))
    ahead = claim(
        "With a few labels the masked D-VAE is ahead of the VAEs",
        "best method by median in most cases",
        *("VAE, BCE", "VAE, L2", "D-VAE, masked"),
    )
    return {
        "labels": replace(ahead, explained=_labels_explained, pictures=("labels/wins.png",)),
        "masking": claim(
            "With a few labels masking makes the MIG of a D-VAE larger",
            f"significantly over all datasets; on dSprites with 1,000 labels {masked} against {plain}",
            *("D-VAE, cross-entropy", "D-VAE, masked"),
        ),
        "some labels": claim(
            "A few labels make the MIG of a D-VAE larger",
            f"with 1,000 labels {plain} against {percent(paper_mig('dvae', 'dsprites'))} without",
            *("D-VAE without labels", "D-VAE, cross-entropy"),
        ),
    }


def labelled(rows: Rows) -> list[Group]:
    """Return the runs with labels, as figures of reports take them."""
    return [Group("dsprites", tuple(rows("labels")), {"dataset": "dsprites"})]


def _labels_explained(rows: Rows) -> Lines:
    """Return shares of wins (the paper's Figure 7), and what latents encode of factors whose labels they have."""
    found, titles = standings(labelled(rows)), methods(labelled(rows))
    header = ("method", *(f"{one.labels} labels, {one.rule}" for one in found))
    shares = [(title, *(f"{one.shares.get(name, 0):.0f}" for one in found)) for name, title in titles.items()]
    lines = ["", WINS.format(found[0].cases), "", *markdown(header, shares)]
    rows_of_methods = []
    for count, (title, (model, loss)) in product(COUNTS, METHODS.items()):
        runs = matching(rows("labels"), "dsprites", model, supervision=loss, labels=count)
        if cells := _information(runs):
            rows_of_methods.append((title, str(count), *cells.values()))
            header = ("method", "labels", *cells)
    if rows_of_methods:
        lines += ["", *WHY_LABELS.splitlines(), "", *markdown(header, rows_of_methods), *_obstacles(rows)]
    return lines


def _obstacles(rows: Rows) -> Lines:
    """Return the masked D-VAE without what may keep it from using its labels."""
    masked: dict[str, Value] = {"supervision": "masked", "labels": 1000}
    usual = Runs("labels", "dsprites", ("dvae",), masked)
    groups = {title: (usual, Runs("ties", "dsprites", ("dvae",), masked | change)) for title, change in CHANGES.items()}
    found = [
        one for title, both in groups.items() if (one := measure(Case((title,), both, ("mig",), difference), rows))
    ]
    if not found:
        return []
    before = found[0].runs[0]
    cells = [("as above", found[0].medians[0], "", str(len(before)), "", *_information(before).values())]
    for one in found:
        changed = one.runs[1]
        told = one.medians[1], one.estimate.text(), str(len(changed)), one.verdict
        cells.append((one.case.labels[0], *told, *_information(changed).values()))
    header = ("D-VAE, masked, 1,000 labels", "MIG", "gain", "runs", "verdict", *_information(before))
    return ["", *OBSTACLES.splitlines(), "", *markdown(header, cells)]


def _information(runs: Sequence[Run]) -> dict[str, str]:
    """Return factor → the median nats about it in the latent tied to it, and the most in a latent tied to none."""
    known = [run for run in runs if any(name.startswith(TIED) for name in run.scores)]
    factors = [name.removeprefix(TIED) for run in known[:1] for name in run.scores if name.startswith(TIED)]
    pairs = {name: [median(scores_of(known, kind + name)) for kind in (TIED, FREE)] for name in factors}
    return {name: " and ".join(f"{value:.2f}" for value in pair) for name, pair in pairs.items()}


def _learning() -> dict[str, Claim]:
    learners = [
        (f"{dataset_title(name)}, {learner}", score, Runs("efficiency", name, ("dvae",)))
        for name, (score, learner) in product(EVERY[1:], efficiencies().items())
    ]
    cases = [
        Case((metric_title(metric), title), (runs,), (metric, score), partial(rank, 1), counts=metric == "mig")
        for metric, (title, score, runs) in product(SIX_METRICS, learners)
    ]

    def few_or_many(rows: Rows) -> Lines:
        cells = []
        for title, score, runs in learners:
            if known := runs.among(rows, ("mig", score)):
                ratio, many = column(known, score), column(known, score.removesuffix(".efficiency"))
                mig = column(known, "mig")
                pairs = ((ratio, many), (mig, many), (mig, many * ratio))
                cells.append((title, *(rank_correlation(*pair).text(2) for pair in pairs)))
        header = ("ratio, accuracy from 10,000", "MIG, accuracy from 10,000", "MIG, accuracy from 100")
        return ["", *WHY_EFFICIENCY.splitlines(), "", *markdown(("dataset and learner", *header), cells)]

    def training_table(found: Sequence[Measured]) -> Lines:
        shown = (*RISING[:4], *reversed(RISING[4:]))
        cells = [
            (
                *(one.case.labels[0], one.count),
                *(f"{float(f'{median(column(one.runs[0], name)):.3g}'):,g}" for name in shown),
                *(_all_rising(one), one.verdict),
            )
            for one in found
        ]
        names = ("KL", "confidence", "reconstruction error")
        changes = [f"{name} {when}" for name in names for when in ("at first", "at the end")]
        return markdown(("dataset", "runs", *changes, "all three", "verdict"), cells)

    training = [
        Case((dataset_title(name),), (Runs("circles families", name, ("dvae",)),), RISING, share_rising, limit=50)
        for name in EVERY
    ]
    return {
        "sample efficiency": Claim(
            "A high MIG goes with sample efficiency",
            "reliably on all six datasets (logistic regression), on all but Cars3D (boosted trees)",
            {"": tuple(cases)},
            lambda found: "rank correlation " + each_seen("{estimate} ({label})", 2)(found),
            table=crossed("metric"),
            explained=few_or_many,
        ),
        "training": Claim(
            "During training a D-VAE's KL rises, its reconstruction error falls and its posteriors become discrete",
            "seen in Section 3.2",
            {"": tuple(training)},
            lambda found: "in " + ", ".join(f"{_all_rising(one)} runs on {one.case.labels[0]}" for one in found),
            table=training_table,
            explained=lambda rows: ["", WHY_TRAINING],
        ),
    }


def _all_rising(one: Measured) -> str:
    return f"{round(one.estimate.value * one.estimate.runs / 100)} of {one.count}"


# ---- The table of a report: the paper's numbers outside its tables

MODEL = SELECTED_FROM[-1]  # the model whose medians these claims are about
NOTES = (
    "The previous best is the best median of a model with continuous latents; the paper's 17 % is the mean over "
    "dSprites, C-dSprites and Cars3D",
    f"Parallel to the axes: the lines of the grid lie within {PARALLEL}° of an axis of their own (root mean square)",
    f"The verdict on a claim about several datasets is {MIXED} if they differ; it takes {FEWEST} runs of each model",
)


Summary = Callable[[Sequence[float]], float]


def reported_claims(datasets: Sequence[str]) -> list[tuple[Claim, Summary]]:
    """Return the claims that a report judges, each with how to summarise the percentages of several datasets."""
    title, worst = model_title(MODEL), -said("selection_worst_loss_percent")
    continuous = [model for model in models if not is_discrete(model)]
    best = [
        Case((name,), _pair("", name, (MODEL,)), ("mig",), percent_gain, rivals=_pair("", name, continuous))
        for name in datasets
    ]
    chosen = [
        Case((name,), (Runs("", name, SELECTED_FROM),), ("gap", "mig"), partial(chosen_over_median, MODEL))
        for name in datasets
    ]
    before, average = (
        said(f"{name}_percent_average")
        for name in ("factor_dvae_gain_over_previous_best", "selection_gain_over_median")
    )
    found: list[tuple[Claim, Summary]] = [
        (_numbered(f"{title} over the previous best, MIG, mean over datasets", before, best), mean),
        (_numbered(f"Selection over the median {title}, MIG, mean over datasets", average, chosen), mean),
        (_numbered(f"Selection over the median {title}, MIG, worst dataset", worst, chosen, worst), min),
    ]
    least = said("circles_axis_parallel_share_discrete_percent_more_than")
    for model in VAES:
        label = f"Latent spaces of the {model_title(model)} on Circles parallel to the axes"
        paper = f"more than {least}" if is_discrete(model) else None
        found.append((_numbered(label, paper, [replace(_parallel(model, "angle"), labels=("circles",))], least), mean))
    return found


def _numbered(title: str, paper: str | float | None, cases: Sequence[Case], limit: float = 0.0) -> Claim:
    return Claim(title, paper, {"": tuple(replace(case, limit=limit) for case in cases)}, _on_average)


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
        used = main[one.case.labels[0]].metric_settings.get("mig") if "mig" in one.case.scores else None
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
