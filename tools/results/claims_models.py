"""What is claimed about models without labels on dSprites and rooms."""

from dataclasses import replace
from statistics import median

import costs
from claims import DATASETS, PAPER, UNREGULARIZED, Claim, better, comparisons, counted, judge, numbers, table
from estimates import FEW, FEWEST, OPEN, OPPOSITE, SHOWN, above, gain, resampled
from table import of, read

from lddr.metrics.choice import SIX_METRICS
from lddr.runs.index import Value

FACTOR = ("factor-vae", "factor-dvae")
SHORT, LONGER = 10_000, 40_000  # steps


@judge
def six_metrics() -> Claim:
    """Shown: as large a share of the cases as in the paper; the opposite: more lost than won."""
    found, details = comparisons("families", DATASETS, SIX_METRICS, UNREGULARIZED)
    won, cases = sum(one.ahead.value > 0 for one in found), len(found)
    fewest = min(one.ahead.runs for one in found)
    said = PAPER["unregularized_cases_won_by_discrete"]
    enough = won / cases >= said["won"] / said["of"]
    verdict = FEW if fewest < FEWEST else SHOWN if enough else OPPOSITE if 2 * won < cases else OPEN
    return Claim(
        "The D-VAE is ahead of the VAE by most metrics",
        f"in {said['won']} of {said['of']} cases",
        f"in {won} of {cases} cases",
        verdict,
        details,
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
    return _lead_grows(
        "On dSprites the D-VAE's lead in MIG is larger when weights begin as torch's do",
        "not said; the authors' are truncated normal",
        "beginnings",
        {f"from {name} weights": {"steps": SHORT, "initialiser": name} for name in ("truncated", "uniform")},
    )


@judge
def longer() -> Claim:
    return _lead_grows(
        "On dSprites the D-VAE's lead in MIG grows with training",
        "not said; its models are trained for 300 000 steps",
        "longer",
        {f"after {steps:,} steps": {"steps": steps, "initialiser": "uniform"} for steps in (SHORT, LONGER)},
    )


def _lead_grows(title: str, paper: str, study: str, kinds: dict[str, dict[str, Value]]) -> Claim:
    """Whether the D-VAE's lead over the VAE is larger among runs of the second kind than among those of the first."""
    everyone = read("families", study)
    rows, seen, both = [], [], []
    for kind, settings in kinds.items():
        values = [numbers(of(everyone, "dsprites", model, **settings), "mig") for model in UNREGULARIZED]
        lead = resampled(above, values[1], values[0])
        both.append(values)
        rows.append((kind, *(f"{median(some):.3f}" for some in values), lead.told(), counted(*values), lead.verdict()))
        seen.append(f"D-VAE ahead by {lead.told()} {kind}")
    more = resampled(lambda a, b, c, d: above(d, c) - above(b, a), *both[0], *both[1])
    header = ("models", "VAE", "D-VAE", "D-VAE ahead by", "runs", "by itself")
    return Claim(title, paper, f"{'; '.join(seen)}; difference {more.told()}", more.verdict(), table(header, rows))


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
