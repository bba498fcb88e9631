"""Tables that explain a verdict; all of them were looked for after the verdict was known."""

from collections.abc import Callable, Sequence
from itertools import product
from statistics import median

import numpy as np

from lddr.report.exhibits import markdown_rows
from lddr.report.groups import scores_of
from lddr.report.style import dataset_title
from lddr.runs.index import Run, Value
from lddr.selection.selectors import all_but_seed
from lddr_paper import judging
from lddr_paper.claims import EVERY
from lddr_paper.comparisons import efficiencies
from lddr_paper.judging import FEWEST, Case, Estimate, Rows, Runs, above, column, matching, resampled
from lddr_paper.published import SELECTED_FROM
from lddr_paper.results.tables import FREE, RESULTS, TIED, read_csv

Blocks = list[str]  # paragraphs and tables of Markdown
WITH_GAP = "families penalties choice"  # the studies whose runs the claims about the gap are judged by
METHODS = {
    "VAE, BCE": ("vae", "bce"),
    "VAE, L2": ("vae", "l2"),
    "D-VAE, cross-entropy": ("dvae", "cross-entropy"),
    "D-VAE, masked": ("dvae", "masked"),
}
CHANGES: dict[str, dict[str, Value]] = {
    "mean bias": {"mean_bias": "true"},
    "risk of one image, ω = 16": {"risk_of": "image", "omega": 16},
}
WHY_LABELS = """\
Looked for after the verdict with 1,000 labels was known: the median information, in nats, about a factor in the latent
that is tied to it, and the largest in any latent that is tied to no factor. The MIG subtracts the second largest."""
OBSTACLES = """\
Two possible obstacles for the D-VAE, removed one at a time: latents that saturate because the images are dark, and
labels that are memorised because the risk of 64 images weighs much."""


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
    return [markdown_rows(("dataset", "score", "pooled", "within types", "within types, more types"), cells)]


def _within_types(runs: Sequence[Run], score: str) -> Estimate | None:
    types: dict[object, list[tuple[float, float]]] = {}
    for run in runs:
        types.setdefault(all_but_seed(run), []).append((-run.scores["gap"], run.scores[score]))
    groups = [np.array(some) for some in types.values() if len(some) >= FEWEST]
    return judging.correlation_within(groups) if groups else None


def labels_explained(rows: Rows) -> Blocks:
    """Return the information in tied and free latents, and the MIG without possible obstacles."""
    cells = []
    header: tuple[str, ...] = ()
    for count, (title, (model, loss)) in product((100, 1000), METHODS.items()):
        runs = matching(rows("labels"), "dsprites", model, supervision=loss, labels=count)
        if found := _information(runs):
            cells.append((title, f"{count:,}", *found.values()))
            header = ("method", "labels", *found)
    return [WHY_LABELS, markdown_rows(header, cells), *_obstacles(rows)] if cells else []


def as_many_latents_as_factors() -> Estimate:
    """Return the lead in MIG of the masked D-VAE over the VAE with BCE, with 1,000 labels and five latents each."""
    runs = [row for row in read_csv(RESULTS / "few_labels" / "scores.csv") if row["dataset"] == "dsprites"]
    masked, bce = (
        [float(row["mig"]) for row in runs if (row["supervision"], row["latents"]) == (loss, "5")]
        for loss in ("masked", "bce")
    )
    return resampled(above, masked, bce)


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
    cells = [("as above", f"{found[0].medians[0]:.3f}", "", str(len(before)), "", *_information(before).values())]
    for one in found:
        changed = one.runs[1]
        numbers = f"{one.medians[1]:.3f}", one.estimate.text(), str(len(changed)), one.verdict
        cells.append((one.case.labels[0], *numbers, *_information(changed).values()))
    header = ("D-VAE, masked, 1,000 labels", "MIG", "difference", "runs", "verdict", *_information(before))
    return [OBSTACLES, markdown_rows(header, cells)]


def _information(runs: Sequence[Run]) -> dict[str, str]:
    """Return factor → the median nats about it in the latent tied to it, and the most in a latent tied to none."""
    known = [run for run in runs if any(name.startswith(TIED) for name in run.scores)]
    factors = [name.removeprefix(TIED) for run in known[:1] for name in run.scores if name.startswith(TIED)]
    pairs = {name: [median(scores_of(known, prefix + name)) for prefix in (TIED, FREE)] for name in factors}
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
    return [markdown_rows(("dataset and learner", *header), cells)]


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
    return [markdown_rows(("dataset", *header), cells)]


EXPLANATIONS: dict[str, Callable[[Rows], Blocks]] = {
    "gap": gap_within_types,
    "labels": labels_explained,
    "sample_efficiency": few_or_many,
    "training": training_medians,
}
