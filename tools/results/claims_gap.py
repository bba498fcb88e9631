"""What is claimed about the straight-through gap: it goes with disentanglement, and finds good models."""

from collections.abc import Sequence

import numpy as np
from claims import DATASETS, PAPER, Claim, NotYetError, judge, table
from estimates import FEWEST, Estimate, paired_ranks, ranks_within, resampled, together
from table import of, read

from lddr.metrics.metric import measures
from lddr.report.style import dataset_title, metric_title
from lddr.runs.index import Run
from lddr.selection.selectors import all_but_seed

COMBINED = ("dvae", "factor-dvae")  # what the paper chooses from
OTHERS = ("tc-dvae", "beta-dvae")
STUDIES = ("families", "penalties", "choice")
LOOKED_AT = {
    "mig": "MIG",
    "sap": "SAP",
    "dci.disentanglement": "DCI, disentanglement",
    "dci.completeness": "DCI, completeness",
    "modularity": "Modularity",
}
WHY = """\
Why, looked for when the verdict had been seen: each kind of model has gaps of its own, so it matters which are put
together. The same correlations with the runs of a kind (a model with its settings) ranked among themselves, then with
those of TC-DVAEs, β-DVAEs and decoders that begin at the mean brightness beside them:"""


@judge
def gap_tells() -> Claim:
    """Rank correlation of a small gap with every metric, D-VAE and FactorDVAE together."""
    shown = [name for name in ("circles", *DATASETS) if len(_with_gap(name)) >= FEWEST]
    found = {metric: [_ranked(_with_gap(dataset), metric) for dataset in shown] for metric in measures()}
    first = [one for one in found["mig"] if one is not None]
    if not first:
        raise NotYetError
    return Claim(
        "A small gap goes with disentanglement",
        "negatively correlated with the metrics on most datasets",
        "rank correlation with MIG " + ", ".join(f"{one.told(2)} on {n}" for n, one in zip(shown, first, strict=True)),
        together(first),
        [
            *table(
                ("metric", *(f"{dataset_title(name)}, {len(_with_gap(name))} runs" for name in shown)),
                [(metric_title(metric), *map(_told, row)) for metric, row in found.items() if any(row)],
            ),
            "",
            WHY,
            "",
            *_by_kind(),
        ],
    )


def _by_kind() -> list[str]:
    """The correlations over runs put together, beside those within kinds of models, also of models of other kinds."""
    rows = []
    for dataset in DATASETS:
        claimed = _with_gap(dataset)
        every = [run for run in of(read(*STUDIES, "brightness"), dataset, *COMBINED, *OTHERS) if "gap" in run.scores]
        for score, title in LOOKED_AT.items():
            found = _ranked(claimed, score), _ranked_within(claimed, score), _ranked_within(every, score)
            rows.append((dataset_title(dataset), title, *map(_told, found)))
    return table(("dataset", "score", "together", "within kinds", "within kinds, with the others"), rows)


def _ranked_within(runs: Sequence[Run], score: str) -> Estimate | None:
    kinds: dict[object, list[tuple[float, float]]] = {}
    for run in runs:
        if score in run.scores:
            kinds.setdefault(all_but_seed(run), []).append((-run.scores["gap"], run.scores[score]))
    groups = [np.array(some) for some in kinds.values() if len(some) >= FEWEST]
    return ranks_within(groups) if groups else None


def _with_gap(dataset: str) -> list[Run]:
    runs = read("circles") if dataset == "circles" else read(*STUDIES)
    return [run for run in of(runs, dataset, *COMBINED) if "gap" in run.scores]


def _told(found: Estimate | None) -> str:
    return "–" if found is None else found.told(2)


def _ranked(runs: Sequence[Run], metric: str) -> Estimate | None:
    both = [(-run.scores["gap"], run.scores[metric]) for run in runs if metric in run.scores]
    return paired_ranks(*np.array(both).T) if len(both) >= FEWEST else None


@judge
def gap_chooses() -> Claim:
    """The run with the smallest gap over the median run; resampled runs are chosen from anew."""
    rows, found = [], []
    for dataset in ("circles", *DATASETS):
        runs = [run for run in _with_gap(dataset) if "mig" in run.scores]
        if len(runs) < FEWEST:
            continue
        both = np.array([(run.scores["gap"], run.scores["mig"]) for run in runs])
        more = resampled(lambda places, both=both: _choice(both, places), np.arange(len(both)))
        found.append(more)
        rows.append((dataset_title(dataset), str(len(runs)), more.told(0, " %"), more.verdict()))
    if not found:
        raise NotYetError
    return Claim(
        "Choosing by the gap beats the median model",
        f"+{PAPER['selection_gain_over_median_percent_average']} % MIG on average over datasets",
        f"{np.mean([one.value for one in found]):+.0f} % on average over {len(found)} datasets".replace("-", "−"),
        together(found),
        table(("dataset", "runs", "MIG of the choice over the median", "by itself"), rows),
    )


def _choice(both: np.ndarray, places: np.ndarray) -> np.ndarray:
    drawn = both[places.astype(int)]  # (…, runs, 2)
    chosen = np.take_along_axis(drawn[..., 1], drawn[..., 0].argmin(-1)[..., None], -1)[..., 0]
    return 100 * (chosen / np.median(drawn[..., 1], axis=-1) - 1)
