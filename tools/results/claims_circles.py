"""What is claimed about Circles: its latent grids, and who has the larger MIG."""

from collections.abc import Sequence
from statistics import median

from claims import PAPER, UNREGULARIZED, Claim, better, counted, judge, numbers, table
from estimates import Estimate, above, resampled, share
from table import of, read

from lddr.report.style import model_title
from lddr_paper.latent_figures import PARALLEL


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
    return better("On Circles the D-VAE has the larger MIG", "pictures only", "circles", ("circles",), UNREGULARIZED)
