"""The pictures of the results pages, from the tables or, where they show latent spaces, from the models."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lddr.files import written_whole
from lddr.metrics.metric import SIX_METRICS, UndefinedError
from lddr.report.exhibits import figures
from lddr.report.groups import Group, scores_of
from lddr.report.style import (
    FAINT,
    INK,
    Figure,
    dataset_title,
    house_style,
    metric_title,
    model_order,
    model_title,
    new_figure,
    paneled,
    rendered,
)
from lddr.runs.index import Run
from lddr_paper.claims import claims
from lddr_paper.judging import CONTRADICTED, INCONCLUSIVE, MIXED, SUPPORTED, Claim, Judgement, judge, matching
from lddr_paper.results.discrete import discrete_runs, mean_ranks, scores_by_dataset
from lddr_paper.results.pages import cases_won, counted
from lddr_paper.results.selection import pools
from lddr_paper.results.tables import RESULTS, read_runs
from lddr_paper.score_figures import draw_rows, heat_map, heat_maps

SHOWN = ("mig", "dci", "modularity")
SHEETS = {"vae": "circles-vae", "dvae": "circles-dvae"}  # drawn from models: all grids, best MIG first
PERCENTILES = range(10, 100, 10)
VERDICTS = {SUPPORTED: "reproduced", MIXED: "mixed", INCONCLUSIVE: "inconclusive", CONTRADICTED: "contradicted"}
VERDICT_COLOURS = {SUPPORTED: "#1b7837", MIXED: "#b8860b", INCONCLUSIVE: FAINT, CONTRADICTED: "#b2182b"}
PANELS = {"MIG": "difference in median MIG", "correlation": "rank correlation", "%": "%", "degrees": "degrees"}


def draw_from_models(runs: Sequence[Run]) -> None:
    """Draw the latent spaces of Circles, once all models of the table are at hand."""
    circles = matching(runs, "circles", "vae", "dvae")
    if not circles or {run.name for run in read_runs("circles")} - {run.name for run in circles}:
        return
    for name in SHEETS.values():
        try:
            _save(
                figures[name].make([Group("circles", tuple(circles), {"dataset": "circles"})]).figure, f"circles/{name}"
            )
        except UndefinedError as why:
            print(f"{name}: {why}")


def draw_from_tables() -> None:
    """Draw all pictures that need no models; the grids of Circles are cut from the sheets of all of them."""
    _save(forest([one for claim in claims().values() if (one := judge(claim, read_runs))]), "claims")
    _save(grids_by_percentile(), "circles/percentiles", dpi=100)
    _save(both_families(), "families/metrics")
    with_labels = Group("dSprites", tuple(read_runs("labels")), {"dataset": "dsprites"})
    _save(figures["semi-supervised"].make([with_labels]).figure, "labels/mig")
    penalties = matching(read_runs("families", "penalties"), "dsprites")
    types = sorted({str(run.value("model")) for run in penalties}, key=model_order)
    _save(scores_of_models(penalties, types), "penalties/scores")
    _save(scores_of_models(discrete_runs(), list(mean_ranks(scores_by_dataset()))), "discrete/scores")
    _save(selector_maps(), "selection/correlations")


def _save(figure: Figure, name: str, dpi: int = 110) -> None:
    path: Path = RESULTS / f"{name}.png"
    with written_whole(path) as draft:
        draft.write_bytes(rendered(figure, dpi=dpi))


# ---- All claims


@house_style()
def forest(judged: Sequence[Judgement]) -> Figure:
    """Draw the effect and the 95 % interval of every case that counts, grouped by verdict, a column for each unit."""
    rows: dict[str, list[tuple[Claim, str, float, float, float, float]]] = {name: [] for name in VERDICTS}
    for one in judged:
        claim = one.claim
        for variant, found in one.found.items():
            entries = rows.setdefault(one.verdicts[variant], [])
            if claim.axis == "cases":
                won, cases = cases_won(found)
                share = 100 * won / cases
                entries.append((claim, f"{claim.short}, {variant} ({won} of {cases})", share, share, share, 50))
                continue
            for label, case in counted(found).items():
                estimate = case.estimate
                named = claim.short + "".join(f", {word}" for word in (variant, label) if word)
                entries.append((claim, named, estimate.value, estimate.low, estimate.high, case.case.limit))
    rows = {verdict: some for verdict, some in rows.items() if some}
    height = sum(map(len, rows.values())) + 1.2 * len(rows)
    figure = new_figure(10.5, 0.21 * height + 0.6)
    figure.get_layout_engine().set(rect=(0.02, 0, 0.98, 1))  # type: ignore[union-attr, call-arg]  # room for long names
    panels = dict(zip(PANELS, figure.subplots(1, len(PANELS), sharey=True, width_ratios=(3, 1.6, 1.6, 1)), strict=True))
    place, places, names = 0.0, [], []
    for verdict, entries in rows.items():
        ink = VERDICT_COLOURS.get(verdict, INK)
        panels["MIG"].annotate(
            VERDICTS.get(verdict, verdict), (-0.02, place), xycoords=("axes fraction", "data"), ha="right", va="center",
            color=ink, fontweight="bold", annotation_clip=False,
        )  # fmt: skip
        for claim, name, value, low, high, limit in entries:
            place += 1
            places.append(place)
            names.append(name if claim.paper else f"{name} *")
            axes = panels["%" if claim.axis == "cases" else claim.axis]
            axes.plot((low, high), (place, place), color=ink, linewidth=1.6)
            axes.plot(value, place, "o", color=ink, markersize=4.5)
            axes.plot((limit, limit), (place - 0.45, place + 0.45), color=INK, linewidth=0.8)
        place += 1.2
    for unit, axes in panels.items():
        axes.set(xlabel=PANELS[unit], ylim=(place - 0.4, -0.8), yticks=())
        axes.set_yticks(places, names)
        axes.tick_params(axis="y", length=0, labelleft=unit == "MIG", labelsize=7.5)
        axes.grid(axis="both")
    figure.supxlabel(
        "vertical lines: the value that a claim says is exceeded · * our own hypotheses (reproduced means supported)",
        fontsize=8,
    )
    return figure


# ---- Latent grids


@house_style()
def grids_by_percentile() -> Figure:
    """Draw the grids of both families at percentiles of MIG, cut from the sheets of all grids."""
    runs = {model: matching(read_runs("circles"), "circles", model) for model in SHEETS}
    figure = new_figure(1.02 * len(PERCENTILES) + 0.6, 2.9)
    panels = figure.subplots(len(SHEETS), len(PERCENTILES))
    for row, (model, sheet) in zip(panels, SHEETS.items(), strict=True):
        scores = sorted(scores_of(runs[model], "mig"), reverse=True)
        grids = sheet_panels(RESULTS / "circles" / f"{sheet}.png", len(scores))
        for axes, percentile in zip(row, PERCENTILES, strict=True):
            rank = round((1 - percentile / 100) * (len(scores) - 1))
            axes.imshow(grids[rank], interpolation="lanczos")
            axes.set(xticks=(), yticks=(), xlabel=f"MIG {scores[rank]:.2f}")
            axes.spines[:].set_visible(False)
        row[0].set_ylabel(model_title(model), fontweight="bold")
    for axes, percentile in zip(panels[0], PERCENTILES, strict=True):
        axes.set_title(
            "median" if percentile == 50 else f"{percentile} %", fontweight="bold" if percentile == 50 else None
        )
    turns = {model: np.median(scores_of(some, "turn")) for model, some in runs.items()}
    figure.suptitle(
        f"Circles, {len(runs['vae'])} seeds each, by percentile of MIG: "
        f"the median VAE grid is rotated by {turns['vae']:.0f}°, the median D-VAE grid by {turns['dvae']:.0f}°"
    )
    return figure


def sheet_panels(path: Path, count: int) -> list[NDArray]:
    """Return the panels of a sheet, row by row, without their frames, which are found as long dark lines."""
    from PIL import Image

    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    dark = pixels.max(axis=2) < 80
    rows, columns = (_spans(dark.mean(axis=axis) > 0.5) for axis in (1, 0))
    cells = [pixels[top + 1 : bottom, left + 1 : right] for top, bottom in rows for left, right in columns]
    assert len(cells) >= count, f"{path} has {len(cells)} panels, not {count}"
    return cells[:count]


def _spans(is_frame: NDArray) -> list[tuple[int, int]]:
    """Return the two lines of every frame; the space between two frames is narrower than a frame."""
    spans = list(pairwise(np.flatnonzero(is_frame).tolist()))
    widest = max(right - left for left, right in spans)
    return [(left, right) for left, right in spans if right - left > widest / 2]


# ---- Scores


@house_style()
def both_families() -> Figure:
    """Draw every run of VAE and D-VAE by six metrics: with the default bias, with the mean bias, and on rooms."""
    conditions = {
        "dSprites,\ndefault bias": matching(read_runs("families"), "dsprites", mean_bias="false"),
        "dSprites,\nmean bias": matching(read_runs("brightness"), "dsprites", "vae", "dvae", mean_bias="true"),
        "rooms,\ndefault bias": matching(read_runs("families"), "rooms", mean_bias="false"),
    }
    models = ("vae", "dvae")
    figure = new_figure(10.5, 1.15 * len(conditions) + 0.5)
    panels = figure.subplots(len(conditions), len(SIX_METRICS), sharex="col")
    for row, (title, runs) in zip(panels, conditions.items(), strict=True):
        by_model = {model: [run for run in runs if run.value("model") == model] for model in models}
        for axes, metric in zip(row, SIX_METRICS, strict=True):
            scores = {model: scores_of(some, metric) for model, some in by_model.items()}
            draw_rows(axes, list(scores.items()))
            axes.locator_params(axis="x", nbins=5)
            axes.set_yticks(range(len(models)), [""] * len(models))
        names = [f"{model_title(model)}, n = {len(by_model[model])}" for model in models]
        row[0].set_yticks(range(len(models)), names)
        row[0].set_ylabel(title, fontweight="bold", fontsize=8)
    for axes, metric in zip(panels[0], SIX_METRICS, strict=True):
        axes.set_title(metric_title(metric))
    return figure


@house_style()
def scores_of_models(runs: Sequence[Run], names: Sequence[str]) -> Figure:
    """Draw every run, models in this order; a row of panels for each dataset, a column for each metric."""
    datasets = sorted({str(run.value("dataset")) for run in runs})
    size = 3.0, 0.26 * len(names) + 0.6
    figure, panels = paneled(len(datasets) * len(SHOWN), len(SHOWN), size, (1.2, 0), sharey="row")
    for place, axes in enumerate(panels):
        dataset, metric = datasets[place // len(SHOWN)], SHOWN[place % len(SHOWN)]
        scores = {model: scores_of(matching(runs, dataset, model), metric) for model in names}
        draw_rows(axes, list(scores.items()))
        axes.set_yticks(range(len(names)), [f"{model_title(model)}, n = {len(scores[model])}" for model in names])
        axes.set_title(f"{metric_title(metric)}, {dataset_title(dataset)}")
    return figure


@house_style()
def selector_maps() -> Figure:
    """Draw the rank correlations of selectors with the six metrics; those whose interval includes 0 are grey."""
    maps = []
    for pool in pools():
        title, found = f"{dataset_title(pool.dataset)}, n = {len(pool.runs)}", map(pool.correlations, pool.selectors)
        maps.append(heat_map(title, pool.selectors, map(metric_title, pool.metrics), found))
    return heat_maps(maps)
