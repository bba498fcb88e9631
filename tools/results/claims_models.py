"""What is claimed about models without labels on dSprites and rooms."""

from dataclasses import replace
from statistics import median

import costs
from claims import DATASETS, PAPER, UNREGULARIZED, Claim, better, comparisons, counted, judge, numbers, table
from estimates import FEW, FEWEST, OPEN, OPPOSITE, SHOWN, above, gain, resampled
from table import of, read

from lddr.metrics.choice import SIX_METRICS

FACTOR = ("factor-vae", "factor-dvae")


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
