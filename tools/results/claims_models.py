"""What is claimed about models without labels on dSprites and rooms."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import costs
from claims import (
    DATASETS,
    PAPER,
    UNREGULARIZED,
    Claim,
    Comparison,
    better,
    comparisons,
    counted,
    judge,
    numbers,
    table,
)
from estimates import FEW, FEWEST, OPEN, OPPOSITE, SHOWN, above, gain, resampled
from table import of, read

from lddr.metrics.choice import SIX_METRICS
from lddr.report.titles import metric_title
from lddr.runs.index import Value

FACTOR = ("factor-vae", "factor-dvae")
USUAL, BRIGHT = "as usual", "from the mean brightness"  # how decoders begin
KL = {"kl.first": "KL in the first hundred steps", "kl": "KL at the end"}


@judge
def six_metrics() -> Claim:
    """Shown: as large a share of the cases as in the paper; the opposite: more lost than won."""
    kinds = {USUAL: comparisons("families", DATASETS, SIX_METRICS, UNREGULARIZED)}
    if _is_bright():
        kinds[f"dSprites {BRIGHT}"] = comparisons("brightness", DATASETS, SIX_METRICS, UNREGULARIZED)
    said = PAPER["unregularized_cases_won_by_discrete"]
    won = {kind: _cases(found, said["won"] / said["of"]) for kind, (found, _) in kinds.items()}
    return Claim(
        "The D-VAE is ahead of the VAE by most metrics",
        f"in {said['won']} of {said['of']} cases",
        "; ".join(f"{kind} in {cases} cases" for kind, (cases, _) in won.items()),
        "; ".join(f"{kind}: {verdict}" for kind, (_, verdict) in won.items()),
        [line for kind, (_, details) in kinds.items() for line in (f"**{kind}**", "", *details, "")][:-1],
        ("families/metrics.png",),
    )


def _cases(found: Sequence[Comparison], enough: float) -> tuple[str, str]:
    """How many of the cases the second model wins, and what that says."""
    won, cases = sum(one.ahead.value > 0 for one in found), len(found)
    fewest = min(one.ahead.runs for one in found)
    verdict = FEW if fewest < FEWEST else SHOWN if won / cases >= enough else OPPOSITE if 2 * won < cases else OPEN
    return f"{won} of {cases}", verdict


def _is_bright() -> bool:
    """Whether there are enough runs of both families whose decoders begin at the mean brightness."""
    return len(read("brightness")) >= 2 * FEWEST


@judge
def mig_gain() -> Claim:
    said = PAPER["unregularized_mig_median_gain_percent"]["dsprites"]
    kinds = {USUAL: _both("families")}
    if _is_bright():
        kinds[BRIGHT] = _both("brightness")
    more = {kind: resampled(gain, discrete, gaussian) for kind, (gaussian, discrete) in kinds.items()}
    return Claim(
        "On dSprites the D-VAE's median MIG is far above the VAE's",
        f"+{said} %",
        "; ".join(f"{kind} {more[kind].told(0, ' %')}, {counted(*both)}" for kind, both in kinds.items()),
        "; ".join(f"{kind}: {more[kind].verdict()}" for kind in kinds),
        [],
    )


@judge
def beginnings() -> Claim:
    return _lead_grows(
        "On dSprites the D-VAE's lead in MIG is larger when weights begin as torch's do",
        "not said; the authors' are truncated normal",
        {"from truncated weights": _both("beginnings", initialiser="truncated"), "from torch's": _both("families")},
    )


@judge
def longer() -> Claim:
    return _lead_grows(
        "On dSprites the D-VAE's lead in MIG grows with training",
        "not said; its models are trained for 300 000 steps",
        {"after 10 000 steps": _both("families"), "after 40 000": _both("longer")},
    )


@judge
def brightness_lead() -> Claim:
    return _lead_grows(
        "On dSprites the D-VAE's lead in MIG is larger when decoders begin at the images' mean brightness",
        "ours to test",
        {USUAL: _both("families"), BRIGHT: _both("brightness")},
    )


@judge
def brightness() -> Claim:
    """The same D-VAE with and without `--mean-bias`, by six metrics."""
    runs = [of(read(study), "dsprites", "dvae") for study in ("families", "brightness")]
    found = {score: [numbers(some, score) for some in runs] for score in (*SIX_METRICS, *KL)}
    more = {score: resampled(above, new, old) for score, (old, new) in found.items()}
    rows = [
        (KL.get(score) or metric_title(score), *(f"{median(some):.3f}" for some in both), more[score].told())
        for score, both in found.items()
    ]
    return Claim(
        "A D-VAE on dSprites has the larger MIG when its decoder begins at the images' mean brightness",
        "ours to test",
        f"median MIG {more['mig'].told()}; {counted(*runs)}",
        more["mig"].verdict(),
        table(("score", USUAL, BRIGHT, "difference of medians"), rows),
    )


def _both(study: str, **settings: Value) -> list[list[float]]:
    """The MIG of the VAEs and of the D-VAEs of a study on dSprites."""
    return [numbers(of(read(study), "dsprites", model, **settings), "mig") for model in UNREGULARIZED]


def _lead_grows(title: str, paper: str, kinds: dict[str, list[list[float]]]) -> Claim:
    """Whether the D-VAE's lead over the VAE is larger among runs of the second kind than among those of the first."""
    leads = {kind: resampled(above, discrete, gaussian) for kind, (gaussian, discrete) in kinds.items()}
    rows = [
        (kind, *(f"{median(some):.3f}" for some in both), leads[kind].told(), counted(*both), leads[kind].verdict())
        for kind, both in kinds.items()
    ]
    first, second = kinds.values()
    more = resampled(lambda a, b, c, d: above(d, c) - above(b, a), *first, *second)
    seen = [f"{lead.told()} {kind}" for kind, lead in leads.items()]
    header = ("models", "VAE", "D-VAE", "D-VAE ahead by", "runs", "by itself")
    seen_text = f"D-VAE ahead by {', '.join(seen)}; difference {more.told()}"
    return Claim(title, paper, seen_text, more.verdict(), table(header, rows))


@judge
def factor() -> Claim:
    return better(
        "FactorDVAE has a larger MIG than FactorVAE on dSprites", "21.7 % against 17.4 %", "penalties", DATASETS, FACTOR
    )


@judge
def total_correlation() -> Claim:
    pair = ("factor-dvae", "tc-dvae")
    title = "TC-DVAE has a larger MIG than FactorDVAE on dSprites, at less cost"
    claim = replace(better(title, "ours to test", "penalties", DATASETS[:1], pair), pictures=("scores.png",))
    cost = costs.read()
    if not cost.keys() >= set(pair):
        return claim
    told = " against ".join(f"{cost[model]:.0f} ms" for model in reversed(pair))
    cheaper = cost[pair[1]] < cost[pair[0]]
    verdict = claim.verdict if cheaper or claim.verdict != SHOWN else OPEN
    return replace(claim, seen=f"{claim.seen}; a step takes {told}", verdict=verdict)
