"""What is claimed, what our runs say about it, and the verdict that follows from the rules."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import costs
import numpy as np
from estimates import FEW, FEWEST, OPEN, OPPOSITE, SHOWN, Estimate, above, gain, paired_ranks, resampled, share
from table import of, read

from lddr.metrics.choice import SIX_METRICS, measures
from lddr.report.drawing.latent_grid import PARALLEL
from lddr.report.groups import scores_of
from lddr.report.paper import paper_results
from lddr.report.ranks import efficiencies
from lddr.report.titles import dataset_title, metric_title, model_title
from lddr.runs.index import Run

PAPER = paper_results()["claims"]
UNREGULARIZED = ("vae", "dvae")
FACTOR = ("factor-vae", "factor-dvae")
COMBINED = ("dvae", "factor-dvae")  # what the paper chooses from by the gap
DATASETS = ("dsprites", "rooms")
Lines = list[str]


@dataclass(frozen=True)
class Claim:
    """A claim beside what was seen."""

    title: str
    paper: str
    seen: str
    verdict: str
    details: Lines
    pictures: tuple[str, ...] = ()  # beside the page


class NotYetError(Exception):
    """There are no runs to judge it by."""


judges: list[Callable[[], Claim]] = []


def judge(function: Callable[[], Claim]) -> Callable[[], Claim]:
    judges.append(function)
    return function


def numbers(runs: Sequence[Run], score: str, fewest: int = 2) -> list[float]:
    values = scores_of(runs, score)
    if len(values) < fewest:
        raise NotYetError
    return values


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Lines:
    ruler = ["---", *["---:"] * (len(header) - 1)]
    return ["| " + " | ".join(row) + " |" for row in (header, ruler, *rows)]


def counted(*groups: Sequence[object]) -> str:
    return " and ".join(str(len(group)) for group in groups) + " runs"


@judge
def circles_parallel() -> Claim:
    """The paper counts by eye; here a space is parallel if the angle of its grid is at most ten degrees."""
    runs = [of(read("circles"), "circles", model) for model in UNREGULARIZED]
    both = {score: [numbers(some, score) for some in runs] for score in ("angle", "turn")}
    discrete, unbent = (_parallel(spaces[1]) for spaces in both.values())
    least = PAPER["circles_axis_parallel_share_discrete_percent_more_than"]
    rows = [
        (model_title(model), str(len(runs[place])), *(cell for score in both for cell in _cells(both[score][place])))
        for place, model in enumerate(UNREGULARIZED)
    ]
    header = ("model", "runs", f"lines within {PARALLEL}°", "median", f"grid as a whole within {PARALLEL}°", "median")
    return Claim(
        "Many discrete latent spaces of Circles lie parallel to the axes",
        f"more than {least} % of the D-VAEs",
        f"{_share_told(discrete)} of {discrete.runs} D-VAEs; with bends left out {_share_told(unbent)}",
        f"{discrete.verdict(least)}; bends left out: {unbent.verdict(least)}",
        table(header, rows),
        ("circles/circles.png", "circles/circles-vae.png", "circles/circles-dvae.png"),
    )


def _cells(angles: Sequence[float]) -> tuple[str, str]:
    return _share_told(_parallel(angles)), f"{median(angles):.1f}°"


def _parallel(angles: Sequence[float]) -> Estimate:
    return share(sum(angle <= PARALLEL for angle in angles), len(angles))


def _share_told(one: Estimate) -> str:
    return f"{one.value:.0f} % ({one.low:.0f} to {one.high:.0f})"


@judge
def circles_turned() -> Claim:
    runs = [of(read("circles"), "circles", model) for model in UNREGULARIZED]
    lines, whole = (resampled(above, *(numbers(some, score) for some in runs)) for score in ("angle", "turn"))
    return Claim(
        "Gaussian latent spaces of Circles are turned further",
        "even the best Gaussian spaces are turned",
        f"the median angle is {lines.told(1, '°')} larger, with bends left out {whole.told(1, '°')}; {counted(*runs)}",
        f"{lines.verdict()}; bends left out: {whole.verdict()}",
        [],
    )


@judge
def circles_scores() -> Claim:
    return _better("On Circles the D-VAE has the larger MIG", "pictures only", "circles", ("circles",), UNREGULARIZED)


@judge
def six_metrics() -> Claim:
    """Shown: as large a share of the cases as in the paper; the opposite: more lost than won."""
    rows, won, cases, fewest = [], 0, 0, []
    for dataset in DATASETS:
        for metric in SIX_METRICS:
            both = [scores_of(of(read("families"), dataset, model), metric) for model in UNREGULARIZED]
            if min(map(len, both)) < 2:
                continue
            more = resampled(above, both[1], both[0])
            medians = [f"{median(values):.3f}" for values in both]
            runs = " and ".join(str(len(values)) for values in both)
            rows.append((dataset_title(dataset), metric_title(metric), *medians, more.told(), runs, more.verdict()))
            won, cases, fewest = won + (more.value > 0), cases + 1, [*fewest, more.runs]
    if not cases:
        raise NotYetError
    said = PAPER["unregularized_cases_won_by_discrete"]
    enough = won / cases >= said["won"] / said["of"]
    verdict = FEW if min(fewest) < FEWEST else SHOWN if enough else OPPOSITE if 2 * won < cases else OPEN
    header = ("dataset", "metric", "VAE", "D-VAE", "D-VAE ahead by", "runs", "by itself")
    return Claim(
        "The D-VAE is ahead of the VAE by most metrics",
        f"in {said['won']} of {said['of']} cases",
        f"in {won} of {cases} cases",
        verdict,
        table(header, rows),
        ("families/metrics.png",),
    )


@judge
def mig_gain() -> Claim:
    said = PAPER["unregularized_mig_median_gain_percent"]["dsprites"]
    both = [numbers(of(read("families"), "dsprites", model), "mig") for model in UNREGULARIZED]
    more = resampled(gain, both[1], both[0])
    return Claim(
        "On dSprites the D-VAE's median MIG is far above the VAE's",
        f"+{said} %",
        f"{more.told(0, ' %')}; {counted(*both)}",
        more.verdict(),
        [],
    )


@judge
def beginnings() -> Claim:
    """Whether the D-VAE's lead is larger when weights begin as torch's do; an interval for each beginning."""
    rows, seen, leads = [], [], []
    for initialiser in ("uniform", "truncated"):
        runs = [of(read("beginnings"), "dsprites", model, initialiser=initialiser) for model in UNREGULARIZED]
        both = [numbers(some, "mig") for some in runs]
        more = resampled(above, both[1], both[0])
        leads.append(both[::-1])
        rows.append((initialiser, *(f"{median(values):.3f}" for values in both), more.told(), counted(*both)))
        seen.append(f"D-VAE ahead by {more.told()} from {initialiser} weights")
    lead = resampled(lambda a, b, c, d: above(a, b) - above(c, d), *leads[0], *leads[1])
    return Claim(
        "On dSprites the D-VAE's lead in MIG depends on how weights begin",
        "not said; the authors' are truncated normal",
        f"{'; '.join(seen)}; difference {lead.told()}",
        lead.verdict(),
        table(("weights", "VAE", "D-VAE", "difference of medians", "runs"), rows),
    )


@judge
def factor() -> Claim:
    return _better(
        "FactorDVAE has a larger MIG than FactorVAE on dSprites", "21.7 % against 17.4 %", "penalties", DATASETS, FACTOR
    )


@judge
def total_correlation() -> Claim:
    pair = ("factor-dvae", "tc-dvae")
    title = "TC-DVAE has a larger MIG than FactorDVAE on dSprites, at less cost"
    claim = replace(_better(title, "ours to test", "penalties", DATASETS[:1], pair), pictures=("scores.png",))
    cost = costs.read()
    if not cost.keys() >= set(pair):
        return claim
    told = " against ".join(f"{cost[model]:.0f} ms" for model in reversed(pair))
    cheaper = cost[pair[1]] < cost[pair[0]]
    verdict = claim.verdict if cheaper or claim.verdict != SHOWN else OPEN
    return replace(claim, seen=f"{claim.seen}; a step takes {told}", verdict=verdict)


def _better(title: str, paper: str, study: str, datasets: Sequence[str], pair: Sequence[str]) -> Claim:
    """Whether the second model's median is above the first's."""
    rows, first = [], None
    for dataset in datasets:
        for metric in ("mig", "dci"):
            both = [scores_of(of(read(study), dataset, model), metric) for model in pair]
            if min(map(len, both)) < 2:
                continue
            more = resampled(above, both[1], both[0])
            medians = [f"{median(values):.3f}" for values in both]
            runs = " and ".join(str(len(values)) for values in both)
            rows.append((dataset_title(dataset), metric_title(metric), *medians, more.told(), runs, more.verdict()))
            first = first or (more, both)
    if first is None:
        raise NotYetError
    more, both = first
    header = ("dataset", "metric", *map(model_title, pair), "difference of medians", "runs", "by itself")
    seen = f"median MIG {more.told()}; {counted(*both)}"
    return Claim(title, paper, seen, more.verdict(), table(header, rows))


@judge
def gap_tells() -> Claim:
    """Rank correlation of a small gap with every metric, D-VAE and FactorDVAE together."""
    rows: dict[str, list[str]] = {}
    first: list[Estimate] = []
    shown = [name for name in ("circles", *DATASETS) if len(_with_gap(name)) >= FEWEST]
    for dataset in shown:
        for metric in measures():
            found = _ranked(_with_gap(dataset), metric)
            if found is None:
                continue
            rows.setdefault(metric, [metric_title(metric)]).append(found.told(2))
            first += [found] if metric == "mig" else []
    if not first:
        raise NotYetError
    verdicts = {one.verdict() for one in first}
    return Claim(
        "A small gap goes with disentanglement",
        "negatively correlated with the metrics on most datasets",
        "rank correlation with MIG " + ", ".join(f"{one.told(2)} on {n}" for n, one in zip(shown, first, strict=True)),
        verdicts.pop() if len(verdicts) == 1 else OPEN,
        table(("metric", *(f"{dataset_title(n)}, {len(_with_gap(n))} runs" for n in shown)), list(rows.values())),
    )


def _with_gap(dataset: str) -> list[Run]:
    runs = read("circles") if dataset == "circles" else read("families", "penalties")
    return [run for run in of(runs, dataset, *COMBINED) if "gap" in run.scores]


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
    verdicts = {one.verdict() for one in found}
    return Claim(
        "Choosing by the gap beats the median model",
        f"+{PAPER['selection_gain_over_median_percent_average']} % MIG on average over datasets",
        f"{np.mean([one.value for one in found]):+.0f} % on average over {len(found)} datasets".replace("-", "−"),
        verdicts.pop() if len(verdicts) == 1 else OPEN,
        table(("dataset", "runs", "MIG of the choice over the median", "by itself"), rows),
    )


def _choice(both: np.ndarray, places: np.ndarray) -> np.ndarray:
    drawn = both[places.astype(int)]  # (…, runs, 2)
    chosen = np.take_along_axis(drawn[..., 1], drawn[..., 0].argmin(-1)[..., None], -1)[..., 0]
    return 100 * (chosen / np.median(drawn[..., 1], axis=-1) - 1)


@judge
def labels() -> Claim:
    """Masked cross-entropy of the D-VAE against the better of the VAE's two losses."""
    rows, found = [], []
    runs = read("labels")
    for count in (100, 1000):
        kinds = {
            (model, loss): scores_of(of(runs, "dsprites", model, supervision=loss, labels=count), "mig")
            for model, loss in (("vae", "bce"), ("vae", "l2"), ("dvae", "cross-entropy"), ("dvae", "masked"))
        }
        if min(map(len, kinds.values())) < 2:
            continue
        rivals = max((kinds["vae", loss] for loss in ("bce", "l2")), key=median)
        more = resampled(above, kinds["dvae", "masked"], rivals)
        found.append((count, more))
        rows.append((str(count), *(f"{median(values):.3f}" for values in kinds.values()), more.told(), more.verdict()))
    if not found:
        raise NotYetError
    verdicts = {more.verdict() for _, more in found}
    header = ("labels", "VAE, BCE", "VAE, L2", "D-VAE", "D-VAE, masked", "masked over the better VAE", "by itself")
    return Claim(
        "With a few labels the masked D-VAE is ahead of the VAEs",
        "best method by median in most cases",
        "; ".join(f"{count} labels: median MIG {more.told()}" for count, more in found),
        verdicts.pop() if len(verdicts) == 1 else OPEN,
        table(header, rows),
    )


@judge
def sample_efficiency() -> Claim:
    rows: list[tuple[str, ...]] = []
    strongest: list[str] = []
    for dataset in DATASETS:
        for score, learner in efficiencies().items():
            known = [run for run in of(read("families"), dataset, "dvae") if score in run.scores]
            if len(known) < FEWEST:
                continue
            truth = np.array([run.scores[score] for run in known])
            found = {
                metric: paired_ranks(np.array([run.scores[metric] for run in known]), truth)
                for metric in measures()
                if all(metric in run.scores for run in known)
            }
            best = max(found, key=lambda metric: found[metric].value)
            strongest.append(best)
            told = found[best].told(2)
            rows.append((dataset_title(dataset), learner, str(len(known)), metric_title(best), told))
    if not rows:
        raise NotYetError
    return Claim(
        "Modularity goes with sample efficiency",
        "strongest for Modularity",
        "strongest for " + ", ".join(dict.fromkeys(metric_title(metric) for metric in strongest)),
        SHOWN if set(strongest) == {"modularity"} else OPEN,
        table(("dataset", "learner", "runs", "strongest metric", "its rank correlation"), rows),
    )


@judge
def training() -> Claim:
    """From the beginning to the end: the KL rises, the reconstruction error falls, posteriors become surer."""
    rises = {"kl.first": "kl", "gap.confidence.first": "gap.confidence", "reconstruction": "reconstruction.first"}
    pairs = [name for pair in rises.items() for name in pair]
    runs = [run for run in read("circles", "families") if run.scores.keys() >= set(pairs)]
    if not runs:
        raise NotYetError
    rows = []
    for dataset in ("circles", *DATASETS):
        if own := of(runs, dataset, "dvae"):
            told = [f"{median(scores_of(own, name)):.3g}" for name in (*pairs[:4], *reversed(pairs[4:]))]
            rows.append((dataset_title(dataset), str(len(own)), *told))
    kept = sum(all(run.scores[low] < run.scores[high] for low, high in rises.items()) for run in runs)
    names = ("KL", "confidence", "reconstruction error")
    return Claim(
        "While a D-VAE is trained its KL rises, its reconstruction error falls and its posteriors become discrete",
        "seen in Section 3.2",
        f"in {kept} of {len(runs)} runs",
        share(kept, len(runs)).verdict(50),
        table(("dataset", "runs", *(f"{name} {when}" for name in names for when in ("at first", "at the end"))), rows),
    )
