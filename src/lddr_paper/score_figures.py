"""The paper's figures that compare models by their scores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lddr.errors import UserError
from lddr.metrics.information import Floats
from lddr.metrics.metric import SIX_METRICS, UndefinedError
from lddr.report.card_figures import NOISE_NOTE, colour_bar, draw_matrix, log_columns, noise_scale, settled_range
from lddr.report.exhibits import Drawn, figures
from lddr.report.groups import Group, scores_of
from lddr.report.style import (
    DIVERGING,
    FAINT,
    GOLDEN,
    INK,
    MUTED,
    PAPER,
    SMALL_TEXT,
    TEXT,
    Axes,
    Figure,
    colour,
    few_mark,
    few_note,
    house_style,
    marker,
    metric_title,
    model_title,
    new_figure,
    paneled,
)
from lddr.report.traversals import NAMED, LoadedRun, draw_traversal, traversals
from lddr.runs.index import Run, common_elbo
from lddr_paper.comparisons import (
    Comparison,
    Pair,
    RunColumns,
    compare_pairs,
    efficiencies,
    method,
    methods,
    metric_columns,
    model_pairs,
    num_labels,
    selector_columns,
    wins_text,
)
from lddr_paper.judging import FEWEST_RANKED, Estimate, rank_correlation
from lddr_paper.published import SELECTED_FROM

HALF = 0.42  # half the width of a violin
CONSTANT = 1e-3  # a metric by which all runs differ less has no panel


def draw_violins(axes: Axes, cases: Sequence[Comparison]) -> None:
    """Draw half a violin for each model of each case, with the runs as points and a line at the median."""
    for place, case in enumerate(cases):
        for model, values, side in zip(case.models, (case.gaussian, case.discrete), (-1, 1), strict=True):
            if not few_mark(len(values)):
                heights, widths = profile(np.array(values))
                axes.fill_betweenx(heights, place, place + side * HALF * widths, color=colour(model), alpha=0.4, lw=0)
            _draw_points(axes, place + side * HALF * _jitter(len(values)), values, model)
            axes.plot((place, place + side * HALF), 2 * (np.median(values),), color=INK, linewidth=1.8)
    axes.grid(axis="y")
    axes.tick_params(axis="x", length=0)


def _jitter(count: int) -> Floats:
    """Return offsets in [0.15, 0.85] that keep points apart, the same ones every time."""
    return 0.15 + 0.7 * (np.arange(count, dtype=np.float64) * GOLDEN % 1)


def _draw_points(axes: Axes, across: Floats | Sequence[float], up: Floats | Sequence[float], model: str) -> None:
    look: Any = {"markeredgecolor": INK, "markeredgewidth": 0.3, "markersize": 3.5, "linestyle": "none"}
    axes.plot(across, up, marker="o", color=colour(model), **look)


def profile(values: Floats, points: int = 101) -> tuple[Floats, Floats]:
    """Return a kernel density estimate between the smallest and largest score, with maximum 1: (points,) each."""
    from scipy.stats import gaussian_kde

    low, high = values.min(), values.max()
    if high - low < 1e-9:  # all equal: a thin line
        return np.array([low - 1e-3, low + 1e-3]), np.ones(2)
    heights = np.linspace(low, high, points)
    widths = gaussian_kde(values)(heights)
    return heights, widths / widths.max()


def handles(models: Pair) -> list[Any]:
    """Return the legend entries of two models."""
    from matplotlib.patches import Patch

    return [Patch(facecolor=colour(model), edgecolor=INK, linewidth=0.5, label=model_title(model)) for model in models]


def gain_text(case: Comparison) -> str:
    """Format the change of the median and the number of runs, which are printed below a violin."""
    gain = "" if case.gain is None else f"{case.gain:+.0f} %{few_mark(case.fewest)}".replace("-", "−")
    return f"{gain}\nn = {len(case.gaussian)}, {len(case.discrete)}"


def violins_caption(cases: Sequence[Comparison]) -> str:
    """Describe the halves of the violins."""
    left, right = (model_title(model) for model in cases[0].models)
    few = few_note(wins_text(cases))
    return f"{left} (left) and {right} (right); points are runs, n their numbers, and lines are medians.{few}"


@dataclass(frozen=True)
class HeatMap:
    """Rank correlations of row scores with column scores; NaN if there are too few runs or all are equal."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats  # (rows, columns)
    unclear: NDArray[np.bool_]  # whether the interval of a correlation includes 0, so that it is grey


def heat_map(title: str, rows: Iterable[str], columns: Iterable[str], found: Iterable[Sequence[Estimate]]) -> HeatMap:
    """Return the heat map of some correlations, (rows, columns); those whose interval includes 0 are unclear."""
    parts = np.array([[(one.value, one.low, one.high) for one in row] for row in found])
    values, low, high = np.moveaxis(parts, -1, 0)
    return HeatMap(title, tuple(rows), tuple(columns), values, (low <= 0) & (high >= 0))


def correlations(left: RunColumns, right: RunColumns, title: str = "") -> HeatMap:
    """Correlate every score of `left` (rows) with every score of `right` (columns)."""
    found = [[rank_correlation(row, column) for column in right.values()] for row in left.values()]
    return heat_map(title, left, right, found)


GREY_NOTE = " Grey: the 95 % interval includes 0."


@house_style()
def heat_maps(maps: Sequence[HeatMap]) -> Figure:
    """Draw heat maps side by side, at most three in a row, with one colour bar."""
    rows, columns = max(len(drawn.rows) for drawn in maps), max(len(drawn.columns) for drawn in maps)
    widest = max(len(drawn.title) for drawn in maps) * 0.6 * TEXT / 72  # inches, roughly
    size, alike = (max(0.58 * columns + 0.3, widest + 0.2), 0.34 * rows + 0.9), len({drawn.rows for drawn in maps}) == 1
    figure, panels = paneled(len(maps), 3, size, (1.7, 1.1), sharey=alike)
    for axes, drawn in zip(panels, maps, strict=True):
        draw_matrix(axes, drawn.values, drawn.rows, drawn.columns, DIVERGING, -1, drawn.unclear)
        axes.set_title(drawn.title)
    colour_bar(figure, panels, "Spearman correlation")
    return figure


def _drawn_maps(maps: Sequence[HeatMap], caption: str, missing: str) -> Drawn:
    """Return the figure of some heat maps with its caption; raise UndefinedError if there are none."""
    if not maps:
        raise UndefinedError(missing)
    return Drawn(
        heat_maps(maps), caption + few_note(*(text for drawn in maps for text in (drawn.title, *drawn.columns)))
    )


def model_legend(axes: Axes, runs: Sequence[Run], points: bool = False) -> None:
    """Add a legend entry for each model, in the colour, and with the marker, that it has in all figures."""
    from matplotlib.lines import Line2D

    handles = []
    for model in sorted({str(run.value("model")) for run in runs}):
        look: Any = {"marker": marker(model), "linestyle": "none"} if points else {}
        handles.append(Line2D([], [], color=colour(model), label=model_title(model), **look))
    axes.legend(handles=handles, frameon=True, framealpha=0.9, edgecolor="none")


@figures.add("mig", "Gaussian and discrete models by MIG", 51)
def by_mig(groups: Sequence[Group]) -> Drawn:
    """Draw a panel for each pair of models, with the datasets along its axis."""
    found = compare_pairs(groups, model_pairs(), ["mig"])
    widest = max(2, *map(len, found))
    figure, panels = paneled(len(found), 2, (1.2 + 1.15 * widest, 3.1))
    for axes, cases in zip(panels, found, strict=True):
        _draw_panel(axes, cases)
    captions = (f"{violins_caption(cases)} The discrete model is {wins_text(cases)}." for cases in found)
    return Drawn(figure, " ".join(captions))


def _draw_panel(axes: Axes, cases: Sequence[Comparison]) -> None:
    draw_violins(axes, cases)
    axes.set_xticks(range(len(cases)), [f"{case.dataset}\n{gain_text(case)}" for case in cases])
    top = max(max(case.gaussian + case.discrete) for case in cases)
    axes.set(xlim=(-0.6, len(cases) - 0.4), ylim=(0, 1.2 * top), ylabel=metric_title(cases[0].metric))
    axes.set_title(f"{model_title(cases[0].models[1])} {wins_text(cases)}")
    axes.legend(handles=handles(cases[0].models), loc="upper center", ncols=2)


@figures.add("metrics", "VAE and D-VAE by every metric on every dataset", 50)
def by_every_metric(groups: Sequence[Group]) -> Drawn:
    """Draw a row of panels for each dataset: one panel with its own axis for each metric."""
    (found,) = compare_pairs(groups, model_pairs()[:1], SIX_METRICS)
    differing = {case.metric for case in found if np.ptp(case.gaussian + case.discrete) > CONSTANT}
    cases = [case for case in found if case.metric in differing] or found
    alike = [metric_title(metric) for metric in dict.fromkeys(case.metric for case in found if case not in cases)]
    rows = list(dict.fromkeys(case.dataset for case in cases))
    columns = list(dict.fromkeys(case.metric for case in cases))
    figure = new_figure(1.0 + 1.45 * len(columns), 0.9 + 2.0 * len(rows))
    panels = figure.subplots(len(rows), len(columns), squeeze=False)
    for axes in panels.ravel():
        axes.set_axis_off()
    for case in cases:
        axes = panels[rows.index(case.dataset), columns.index(case.metric)]
        axes.set_axis_on()
        draw_violins(axes, [case])
        axes.set(xlim=(-0.6, 0.6), xticks=(), xlabel=gain_text(case))
        if case is next(other for other in cases if other.metric == case.metric):
            axes.set_title(metric_title(case.metric))
    for row, dataset in zip(panels, rows, strict=True):
        row[0].set_ylabel(dataset, fontweight="bold")
    title = f"{model_title(cases[0].models[1])} {wins_text(found)}; below each panel: change of the median"
    figure.legend(handles=handles(cases[0].models), loc="outside lower center", ncols=2, title=title)
    caption = (
        f"{violins_caption(cases)} A row per dataset, a column per metric, with the change of the median below; "
        f"over all metrics and datasets, the discrete model is {wins_text(found)}."
    )
    if alike:
        caption += f" All runs have the same {' and '.join(alike)}, so there is no panel."
    return Drawn(figure, caption)


COLUMNS = 7  # values of each latent
MOST = 6  # latents


@figures.add("families", "Traversals of a discrete and a Gaussian model", 1)
def two_families(groups: Sequence[Group]) -> Drawn:
    """Draw a block of traversals for each of two models, the discrete one first."""
    group, both = typical(groups)
    first = LoadedRun(both[0])
    found = [traversals(loaded, COLUMNS) for loaded in (first, LoadedRun(both[1], like=first))]
    blocks = [[each.start, *each.rows[:MOST]] for each in found]
    count = max(map(len, blocks))
    figure = new_figure(2 * (1.6 + 0.8 * COLUMNS), 0.95 * count + 0.5)
    halves: Any = figure.subfigures(1, 2)
    for half, run, rows in zip(halves, both, blocks, strict=True):
        panels = half.subplots(count, COLUMNS, squeeze=False)
        for axes in panels.ravel():
            axes.set_axis_off()
        for line, row in zip(panels, rows, strict=False):
            draw_traversal(line, row)
        mig = f" · MIG {run.scores['mig']:.2f}" if "mig" in run.scores else ""
        half.suptitle(model_title(str(run.value("model"))) + mig, fontweight="bold")
    return Drawn(figure, _families_caption(group, both))


def _families_caption(group: Group, both: Sequence[Run]) -> str:
    counts = " and ".join(
        f"{len(group.unsupervised(str(run.value('model'))))} of {model_title(str(run.value('model')))}" for run in both
    )
    by = {"mig": "MIG", "elbo": "ELBO"}.get(_score(both), "ELBO without noise")
    names = " and ".join(run.name for run in both)
    return (
        f"{group.title}. Each row varies one latent and keeps the others; in a disentangled model each row changes one "
        f"factor. Shown are the models with the median {by} of {counts}: {names}. {NAMED}"
    )


def typical(groups: Sequence[Group]) -> tuple[Group, tuple[Run, Run]]:
    """Return the median discrete and Gaussian runs with the same objective, from the first group that has both."""
    for (gaussian, discrete), group in product(model_pairs(), groups):
        members = [group.unsupervised(model) for model in (discrete, gaussian)]
        if all(members):
            first, second = (_median(runs) for runs in members)
            return group, (first, second)
    raise UndefinedError("there are no two runs on the same images, one Gaussian and one discrete, to put side by side")


def _median(runs: Sequence[Run]) -> Run:
    score = _score(runs)
    ranked = sorted(runs, key=lambda run: (run.scores.get(score, float("-inf")), run.name))
    return ranked[(len(ranked) - 1) // 2]


def _score(runs: Sequence[Run]) -> str:
    """Return the score that runs are ranked by: MIG if all have it."""
    return "mig" if all("mig" in run.scores for run in runs) else common_elbo(runs)


EFFICIENCY_CAPTION = (
    "Spearman correlation of the metrics of the D-VAE with its statistical efficiency: the accuracy of predicting the "
    "factors from 100 labelled codes over the accuracy from 10,000." + GREY_NOTE
)


@figures.add("efficiency", "Metrics against statistical efficiency of the D-VAE", 42)
def efficiency(groups: Sequence[Group]) -> Drawn:
    """Draw a heat map for each learner."""
    missing = (
        f"there are no {FEWEST_RANKED} runs of the D-VAE on one dataset with metrics and downstream scores; "
        "get them with: lddr evaluate RUN --metrics mig,downstream_logistic"
    )
    return _drawn_maps(efficiency_maps(groups), EFFICIENCY_CAPTION, missing)


def efficiency_maps(groups: Sequence[Group]) -> list[HeatMap]:
    """Return heat maps with metrics as rows and datasets as columns."""
    chosen = {group.title: group.unsupervised("dvae") for group in groups}
    titles = list(metric_columns([run for members in chosen.values() for run in members]))
    maps = []
    for score, learner in efficiencies().items():
        known: dict[str, list[Estimate]] = {}
        for dataset, members in chosen.items():
            metrics, unknown = metric_columns(members), [None] * len(members)
            able = [run.number(score) for run in members]
            found = [rank_correlation(metrics.get(title, unknown), able) for title in titles]
            if np.isfinite([one.value for one in found]).any():
                known[dataset + few_mark(len(scores_of(members, score)))] = found
        if known:
            maps.append(heat_map(learner, titles, known, zip(*known.values(), strict=True)))
    return maps


BLANK: Any = {"facecolor": PAPER, "edgecolor": "none", "pad": 1}
RATE_CAPTION = (
    "Every finished run by its rate (KL) and its distortion (reconstruction error), in nats per image; runs on one "
    "dashed line have the same ELBO, larger towards the lower left. Hollow: trained with labels."
)
NOISELESS_NOTE = (
    " Distortions are those of codes without noise, because runs of older versions have no others: "
    "lddr evaluate RUN --metrics elbo adds them."
)


@figures.add("rate-distortion", "Rate and distortion", 81)
def rate_distortion(groups: Sequence[Group]) -> Drawn:
    """Draw points over lines of equal ELBO."""
    bound = common_elbo(run for group in groups for run in group.runs)
    scored = {group.title: [run for run in group.runs if {"kl", bound} <= run.scores.keys()] for group in groups}
    scored = {dataset: members for dataset, members in scored.items() if members}
    if not scored:
        raise UndefinedError("there is no finished run with a rate and a distortion; train one to its end")
    figure, panels = paneled(len(scored), 3, (3.4, 3.1), (0.6, 0))
    for axes, (dataset, members) in zip(panels, scored.items(), strict=True):
        for run in members:
            _draw_point(axes, run, bound)
        _draw_elbo_lines(axes)
        axes.set(title=dataset, xlabel="rate: KL (nats)", ylabel="distortion: reconstruction (nats)")
        model_legend(axes, members, points=True)
    return Drawn(figure, RATE_CAPTION + (NOISELESS_NOTE if bound == "elbo_noiseless" else ""))


def _draw_point(axes: Axes, run: Run, bound: str) -> None:
    model = str(run.value("model"))
    hollow = run.value("supervision") is not None
    fill, edge = ("none", colour(model)) if hollow else (colour(model), INK)
    rate, distortion = run.scores["kl"], -run.scores[bound] - run.scores["kl"]
    width = 1.2 if hollow else 0.4
    axes.scatter(rate, distortion, s=34, marker=marker(model), facecolor=fill, edgecolor=edge, linewidth=width)


def _draw_elbo_lines(axes: Axes) -> None:
    """Draw lines of equal ELBO with their values, within the limits that the points set."""
    from matplotlib.ticker import MaxNLocator

    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    for total in MaxNLocator(7).tick_values(left + bottom, right + top):
        axes.plot((left, right), (total - left, total - right), color=FAINT, linestyle="--", linewidth=0.6, zorder=0)
        if bottom < total - right < top - 0.05 * (top - bottom):
            note = f"ELBO {-total:g}".replace("-", "−")
            axes.text(
                right, total - right, note, ha="right", va="center", fontsize=8, color=MUTED, bbox=BLANK, zorder=0.5
            )
    axes.set(xlim=(left, right), ylim=(bottom, top))


@figures.add("semi-supervised", "MIG with a few labels", 60)
def semi_supervised(groups: Sequence[Group]) -> Drawn:
    """Draw a panel for each dataset and number of labels, with a row of points for each method."""
    titles = methods(groups)
    cases = {
        f"{group.title}, {labels:,} labels": [run for run in scored if num_labels(run) == labels]
        for group in groups
        if (scored := [run for run in group.supervised if "mig" in run.scores])
        for labels in sorted(set(map(num_labels, scored)))
    }
    if not cases:
        raise UndefinedError("no run with labels has a MIG; train some with: lddr train --supervision masked")
    figure, panels = paneled(len(cases), 3, (2.4, 0.7 + 0.3 * len(titles)), (1.6, 0.2), sharex=True, sharey=True)
    for axes, (title, runs) in zip(panels, cases.items(), strict=True):
        members = [(name, [run.scores["mig"] for run in runs if method(run) == name]) for name in titles]
        draw_rows(axes, [(model, values) for (model, _), values in members])
        for place, (_, values) in enumerate(members):
            beside = axes.get_yaxis_transform()  # 1 is the right side of the panel
            axes.text(1.03, place, f"n = {len(values)}", va="center", fontsize=SMALL_TEXT, transform=beside)
        axes.set(title=title, xlabel="MIG")
    panels[0].set_xlim(0, None)  # once all runs are drawn: later ones would not widen it
    panels[0].set_yticks(range(len(titles)), titles.values())
    return Drawn(
        figure, "The MIG of every run that was trained with a few labels; lines are medians, n is the number of runs."
    )


def draw_rows(axes: Axes, rows: Sequence[tuple[str, Sequence[float]]]) -> None:
    """Draw a row for each (model, scores): a point for each run, and a line at the median."""
    for place, (model, values) in enumerate(rows):
        if values:
            _draw_points(axes, values, place - 0.25 + 0.5 * _jitter(len(values)), model)
            axes.plot(2 * (np.median(values),), (place - 0.35, place + 0.35), color=INK, linewidth=1.8)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")


@figures.add("curves", "Training of all runs", 80)
def all_curves(groups: Sequence[Group]) -> Drawn:
    """Draw the ELBO over steps, with a panel for each dataset; runs without a log are left out."""
    logs = {group.title: found for group in groups if (found := _elbos(group.runs))}
    if not logs:
        raise UndefinedError("no run has a log of its training with an ELBO")
    figure, panels = paneled(len(logs), 3, (3.4, 3.1), (0.6, 0))
    for axes, (dataset, members) in zip(panels, logs.items(), strict=True):
        for run, (steps, values) in members:
            axes.plot(steps, values, color=colour(str(run.value("model"))), linewidth=1, alpha=0.8)
        lows, highs = zip(*(settled_range(values[~np.isnan(values)]) for _, (_, values) in members), strict=True)
        axes.set(title=dataset, xlabel="step", ylabel="ELBO (nats)", ylim=(min(lows), max(highs)))
        axes.grid(visible=True)
        model_legend(axes, [run for run, _ in members])
    noisy = any(noise_scale(run, steps) is not None for members in logs.values() for run, (steps, _) in members)
    caption = "The ELBO of every run while it trained, in nats per image; a colour for each model."
    return Drawn(figure, f"{caption} {NOISE_NOTE}" if noisy else caption)


def _elbos(runs: Sequence[Run]) -> list[tuple[Run, tuple[np.ndarray, np.ndarray]]]:
    """Return the steps and the ELBO of the runs that have any."""
    found = []
    for run in runs:
        try:
            columns = log_columns(run)
        except UserError:
            continue
        if not np.isnan(columns.get("elbo", np.nan)).all():
            found.append((run, (columns["step"], columns["elbo"])))
    return found


SELECTORS_CAPTION = (
    "Spearman correlation of selectors, which need no labels, with metrics, which do. Signs are chosen so that a "
    "positive number means that the selector helps: a small Gap_ST goes with a large score." + GREY_NOTE
)


@figures.add("selectors", "Choosing a D-VAE without labels", 40)
def selectors_of_dvae(groups: Sequence[Group]) -> Drawn:
    """Draw a heat map for each dataset."""
    missing = (
        f"there are no {FEWEST_RANKED} runs of the D-VAE on one dataset with metrics; "
        "train more seeds, then: lddr evaluate RUN --metrics gap,mig"
    )
    return _drawn_maps(selector_maps(groups, ["dvae"]), SELECTORS_CAPTION, missing)


def selector_maps(groups: Sequence[Group], models: Sequence[str]) -> list[HeatMap]:
    """Return a map per dataset, of the runs of these models together."""
    maps = []
    for group in groups:
        members = group.unsupervised(*models)
        left, right = selector_columns(members), metric_columns(members)
        if len(members) >= FEWEST_RANKED and left and right:
            maps.append(correlations(left, right, f"{group.title} ({len(members)} runs){few_mark(len(members))}"))
    return maps


BOTH = " and ".join(map(model_title, SELECTED_FROM))


@figures.add("selectors-combined", f"Choosing among {BOTH} without labels", 41)
def selectors_of_both(groups: Sequence[Group]) -> Drawn:
    """Draw a heat map for each dataset that has runs of both."""
    able = [group for group in groups if all(group.unsupervised(model) for model in SELECTED_FROM)]
    caption = f"{SELECTORS_CAPTION} Models: {BOTH}, ranked together."
    return _drawn_maps(selector_maps(able, SELECTED_FROM), caption, f"there are no runs of {BOTH} on one dataset")
