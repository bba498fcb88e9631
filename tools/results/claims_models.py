"""What is claimed about models without labels on dSprites and rooms."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

import costs
from claims import DATASETS, PAPER, UNREGULARIZED, Claim, beside, better, comparisons, counted, judge, numbers, table
from codes import evenness
from estimates import FEW, FEWEST, OPEN, OPPOSITE, SHOWN, above, gain, resampled
from table import of, read

from lddr.metrics.metric import SIX_METRICS
from lddr.report.style import metric_title, model_title
from lddr.runs.index import Value

FACTOR = ("factor-vae", "factor-dvae")
USUAL, BRIGHT = "as usual", "from the mean brightness"  # how decoders begin
KL = {"kl.first": "KL in the first hundred steps", "kl": "KL at the end"}
EVENNESS = "entropy of the categories of 1 000 images, summed over latents"


@judge
def six_metrics() -> Claim:
    claim = beside(_usual_or_bright("families", UNREGULARIZED, _cases_won))
    return replace(claim, pictures=("families/metrics.png",))


def _cases_won(study: str) -> Claim:
    """Shown: as large a share of the cases as in the paper; the opposite: more lost than won."""
    found, details = comparisons(study, DATASETS, SIX_METRICS, UNREGULARIZED)
    won, cases = sum(one.ahead.value > 0 for one in found), len(found)
    fewest = min(one.ahead.runs for one in found)
    said = PAPER["unregularized_cases_won_by_discrete"]
    enough = won / cases >= said["won"] / said["of"]
    verdict = FEW if fewest < FEWEST else SHOWN if enough else OPPOSITE if 2 * won < cases else OPEN
    title, paper = "The D-VAE is ahead of the VAE by most metrics", f"in {said['won']} of {said['of']} cases"
    return Claim(title, paper, f"in {won} of {cases} cases", verdict, details)


@judge
def mig_gain() -> Claim:
    return beside(_usual_or_bright("families", UNREGULARIZED, _gain))


def _gain(study: str) -> Claim:
    gaussian, discrete = _both(study)
    more = resampled(gain, discrete, gaussian)
    said = PAPER["unregularized_mig_median_gain_percent"]["dsprites"]
    title = "On dSprites the D-VAE's median MIG is far above the VAE's"
    seen = f"{more.told(0, ' %')}, {counted(gaussian, discrete)}"
    return Claim(title, f"+{said} %", seen, more.verdict(), [])


def _usual_or_bright(study: str, models: Sequence[str], judged: Callable[[str], Claim]) -> dict[str, Claim]:
    """A claim judged by a study and, where there are enough, by runs whose decoders begin at the mean brightness."""
    bright = [of(read("brightness"), "dsprites", model) for model in models]
    kinds = {USUAL: study} | ({f"on dSprites {BRIGHT}": "brightness"} if min(map(len, bright)) >= FEWEST else {})
    return {kind: judged(name) for kind, name in kinds.items()}


@judge
def beginnings() -> Claim:
    return _lead_grows(
        "On dSprites the D-VAE's lead in MIG is larger when weights begin as torch's do",
        "not said; the authors' are truncated normal",
        {"from truncated weights": _both("beginnings", initialiser="truncated"), "from torch's": _both("families")},
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
    return _brighter("dvae", "families")


@judge
def factor_brightness() -> Claim:
    return _brighter("factor-dvae", "penalties", gamma=10)


@judge
def total_correlation_brightness() -> Claim:
    return _brighter("tc-dvae", "penalties", beta=4)


def _brighter(model: str, study: str, **settings: Value) -> Claim:
    """The same model with and without `--mean-bias`, by six metrics."""
    runs = [of(read(one), "dsprites", model, **settings) for one in (study, "brightness")]
    found = {score: [numbers(some, score) for some in runs] for score in (*SIX_METRICS, *KL)}
    found[EVENNESS] = [evenness(some) for some in runs]
    more = {score: resampled(above, new, old) for score, (old, new) in found.items() if old and new}
    rows = [
        (_title(score), *(f"{median(some):.3f}" for some in found[score]), one.told()) for score, one in more.items()
    ]
    return Claim(
        f"A {model_title(model)} on dSprites has the larger MIG when its decoder begins at the images' mean brightness",
        "ours to test",
        f"median MIG {more['mig'].told()}; {counted(*runs)}",
        more["mig"].verdict(),
        table(("score", USUAL, BRIGHT, "difference of medians"), rows),
    )


def _title(score: str) -> str:
    return score if score == EVENNESS else KL.get(score) or metric_title(score)


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
    return beside(_usual_or_bright("penalties", FACTOR, _factor))


def _factor(study: str) -> Claim:
    title = "FactorDVAE has a larger MIG than FactorVAE on dSprites"
    return better(title, "21.7 % against 17.4 %", study, DATASETS, FACTOR)


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
