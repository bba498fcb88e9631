"""What is claimed about sample efficiency, and what happens while a model is trained."""

from collections.abc import Sequence
from statistics import median

import numpy as np
from claims import DATASETS, Claim, NotYetError, judge, table
from estimates import FEWEST, paired_ranks, share, together
from table import of, read

from lddr.metrics.metric import SIX_METRICS
from lddr.report.groups import scores_of
from lddr.report.style import dataset_title, metric_title
from lddr.runs.index import Run
from lddr_paper.comparisons import efficiencies

FROZEN = """\
"At first" is the mean over the first hundred steps, for the confidence before the first. On `dsprites` the KL is large
by then and falls before it rises: [dark images](../docs/training.md#dark-and-light-images) make all latents settle on
one category at first, and what some models keep of it until the end carries nothing."""
RATIO = """\
Sample efficiency is a ratio, the accuracy from 100 labels over that from 10 000, so a model that gains much from many
labels has a small one. Rank correlations that tell whether it is the few labels or the many, added when the verdict was
seen:"""
FEW_OR_MANY = ("ratio, accuracy from 10 000", "MIG, accuracy from 10 000", "MIG, accuracy from 100")


@judge
def sample_efficiency() -> Claim:
    """The accuracy from 100 labels over that from 10 000: does a larger MIG go with a larger one, for each learner?"""
    rows, own, names, parts = [], [], [], []
    for dataset in DATASETS:
        for score, learner in efficiencies().items():
            known = [run for run in of(read("efficiency"), dataset, "dvae") if score in run.scores]
            if len(known) < FEWEST:
                continue
            truth = np.array(scores_of(known, score))
            found = {metric: paired_ranks(np.array(scores_of(known, metric)), truth) for metric in SIX_METRICS}
            own.append(found["mig"])
            names.append(f"{dataset_title(dataset)}, {learner}")
            rows.append((names[-1], str(len(known)), *(one.told(2) for one in found.values())))
            parts.append((names[-1], *_few_or_many(known, score, truth)))
    if not rows:
        raise NotYetError
    return Claim(
        "A high MIG goes with sample efficiency",
        "reliably on all six datasets (logistic regression), on all but Cars3D (boosted trees)",
        "rank correlation " + "; ".join(f"{one.told(2)} ({name})" for one, name in zip(own, names, strict=True)),
        together(own),
        [
            *table(("dataset and learner", "runs", *map(metric_title, SIX_METRICS)), rows),
            *("", *RATIO.splitlines(), ""),
            *table(("dataset and learner", *FEW_OR_MANY), parts),
        ],
    )


def _few_or_many(runs: Sequence[Run], score: str, ratio: np.ndarray) -> tuple[str, ...]:
    """The cells of that table for one learner, whose ratios these are."""
    many, mig = (np.array(scores_of(runs, name)) for name in (score.removesuffix(".efficiency"), "mig"))
    pairs = ((ratio, many), (mig, many), (mig, many * ratio))
    return tuple(paired_ranks(*pair).told(2) for pair in pairs)


@judge
def training() -> Claim:
    """From the beginning to the end: the KL rises, the reconstruction error falls, posteriors become surer."""
    rises = {"kl.first": "kl", "gap.confidence.first": "gap.confidence", "reconstruction": "reconstruction.first"}
    pairs = [name for pair in rises.items() for name in pair]
    runs = [run for run in read("circles", "families") if run.scores.keys() >= set(pairs)]
    rows, shares = [], {}
    for dataset in ("circles", *DATASETS):
        if own := of(runs, dataset, "dvae"):
            kept = sum(all(run.scores[low] < run.scores[high] for low, high in rises.items()) for run in own)
            shares[dataset] = share(kept, len(own))
            medians = [median(scores_of(own, name)) for name in (*pairs[:4], *reversed(pairs[4:]))]
            told = [f"{float(f'{value:.3g}'):,g}" for value in medians]
            verdict = shares[dataset].verdict(50)
            rows.append((dataset_title(dataset), str(len(own)), *told, f"{kept} of {len(own)}", verdict))
    if not rows:
        raise NotYetError
    names = ("KL", "confidence", "reconstruction error")
    changes = [f"{name} {when}" for name in names for when in ("at first", "at the end")]
    return Claim(
        "While a D-VAE is trained its KL rises, its reconstruction error falls and its posteriors become discrete",
        "seen in Section 3.2",
        "in " + ", ".join(f"{row[-2]} runs on {name}" for name, row in zip(shares, rows, strict=True)),
        together(shares.values(), 50),
        [*table(("dataset", "runs", *changes, "all three", "by itself"), rows), "", FROZEN],
    )
