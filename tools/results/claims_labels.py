"""What is claimed about a few labels on dSprites."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from statistics import median

from claims import Claim, Lines, NotYetError, judge, table
from estimates import Estimate, above, resampled, together
from table import FREE, TIED, of, read

from lddr.report.exhibits import Number
from lddr.report.groups import Group, scores_of
from lddr.runs.index import Run, Value
from lddr_paper.comparisons import methods, standings
from lddr_paper.published import paper_mig, paper_supervised

COUNTS, NONE = (100, 1000), "D-VAE without labels"
KINDS = {
    "VAE, BCE": ("vae", "bce"),
    "VAE, L2": ("vae", "l2"),
    "D-VAE, cross-entropy": ("dvae", "cross-entropy"),
    "D-VAE, masked": ("dvae", "masked"),
}
LAST = ("runs", "by itself")
WINS = "Share of {} cases, in percent, in which a method is best (a case is a metric; equals share it):"
REPEATED = """\
Why, looked for when the verdict with 1 000 labels had been seen: the median information in nats about a factor in the
latent tied to it, and the most that one latent has of those tied to none. The MIG subtracts the second most."""
TAKEN_AWAY = """\
What may be in the D-VAE's way, taken away: latents that settle on one category because pictures are dark, and labels
learned by heart because 64 images' risk is heavy. It was in its way if the MIG becomes larger, by the rule of verdicts,
which was said before these runs."""
CHANGES: dict[str, dict[str, Value]] = {
    "from the mean brightness": {"mean_bias": "true"},
    "risk of one image, ω = 16": {"risk_of": "image", "omega": 16},
}


def labelled() -> list[Group]:
    """The runs with labels, as the report's figures and tables take them."""
    return [Group("dsprites", tuple(read("labels")), {"dataset": "dsprites"})]


@judge
def labels() -> Claim:
    """Masked cross-entropy of the D-VAE against the better of the VAE's two losses."""
    claim = _compared(
        "With a few labels the masked D-VAE is ahead of the VAEs",
        "best method by median in most cases",
        ("VAE, BCE", "VAE, L2"),
        ("D-VAE, masked",),
    )
    return replace(claim, details=[*claim.details, *_wins(), *_repeated()], pictures=("labels/wins.png",))


@judge
def masking() -> Claim:
    plain, masked = (_published(loss) for loss in ("cross-entropy", "masked"))
    return _compared(
        "With a few labels masking makes the MIG of a D-VAE larger",
        f"significantly over all datasets; on dSprites with 1 000 labels {masked} against {plain}",
        ("D-VAE, cross-entropy",),
        ("D-VAE, masked",),
    )


@judge
def some_labels() -> Claim:
    """Against the D-VAEs of families, which saw none."""
    return _compared(
        "A few labels make the MIG of a D-VAE larger",
        f"with 1 000 labels {_published('cross-entropy')} against {_percent(paper_mig('dvae', 'dsprites'))} without",
        (NONE,),
        ("D-VAE, cross-entropy",),
    )


def _published(loss: str) -> str:
    return _percent(paper_supervised("dvae", loss, 1000, "dsprites"))


def _percent(number: Number | None) -> str:
    assert number is not None
    return f"{number.value:.1f} %"


def _compared(title: str, paper: str, old: Sequence[str], new: Sequence[str]) -> Claim:
    """The better of some methods against the better of others, by median MIG, for each number of labels."""
    rows, found = [], {}
    for count in COUNTS:
        groups = {kind: _mig(kind, count) for kind in (*old, *new)}
        if min(map(len, groups.values())) < 2:
            continue
        best = [max((groups[kind] for kind in kinds), key=median) for kinds in (new, old)]
        found[count] = resampled(above, *best)
        rows.append(_row(count, groups.values(), found[count]))
    if not found:
        raise NotYetError
    ahead = "ahead of the better one by" if len(old) > 1 else "ahead by"
    seen = "; ".join(f"{count} labels: median MIG {more.told()}" for count, more in found.items())
    return Claim(title, paper, seen, together(found.values()), table(("labels", *old, *new, ahead, *LAST), rows))


def _mig(kind: str, count: int) -> list[float]:
    if kind == NONE:
        return scores_of(of(read("families"), "dsprites", "dvae"), "mig")
    model, loss = KINDS[kind]
    return scores_of(of(read("labels"), "dsprites", model, supervision=loss, labels=count), "mig")


def _row(count: int, groups: Iterable[list[float]], more: Estimate) -> tuple[str, ...]:
    scores = list(groups)
    runs = " and ".join(str(len(values)) for values in scores)
    return str(count), *(f"{median(values):.3f}" for values in scores), more.told(), runs, more.verdict()


def _wins() -> Lines:
    """The paper's Figure 7 as a table: by median, by the lowest risk of labels kept apart, by the smallest gap."""
    found, titles = standings(labelled()), methods(labelled())
    header = ("method", *(f"{one.labels} labels, {one.rule}" for one in found))
    rows = [(title, *(f"{one.shares.get(name, 0):.0f}" for one in found)) for name, title in titles.items()]
    return ["", WINS.format(found[0].cases), "", *table(header, rows)]


def _repeated() -> Lines:
    """What latents know of the factors whose labels they have, and what others know of them besides."""
    runs = read("labels")
    rows = []
    for count, (title, (model, loss)) in product(COUNTS, KINDS.items()):
        if cells := _informed(of(runs, "dsprites", model, supervision=loss, labels=count)):
            rows.append((title, str(count), *cells.values()))
            header = ("method", "labels", *cells)
    return ["", *REPEATED.splitlines(), "", *table(header, rows), *_taken_away()] if rows else []


def _taken_away() -> Lines:
    """The masked D-VAE without what may be in its way."""
    masked: dict[str, Value] = {"supervision": "masked", "labels": 1000}
    usual = of(read("labels"), "dsprites", "dvae", **masked)
    if not usual:
        return []
    rows = [("as above", f"{median(scores_of(usual, 'mig')):.3f}", "", str(len(usual)), "", *_informed(usual).values())]
    for title, settings in CHANGES.items():
        if runs := of(read("ties"), "dsprites", "dvae", **masked, **settings):
            mig = scores_of(runs, "mig")
            more = resampled(above, mig, scores_of(usual, "mig"))
            cells = f"{median(mig):.3f}", more.told(), str(len(runs)), more.verdict(), *_informed(runs).values()
            rows.append((title, *cells))
    header = ("D-VAE, masked, 1 000 labels", "MIG", "more than above", *LAST, *_informed(usual))
    return ["", *TAKEN_AWAY.splitlines(), "", *table(header, rows)] if len(rows) > 1 else []


def _informed(runs: Sequence[Run]) -> dict[str, str]:
    """Factor → the medians of what the latent tied to it knows of it, and a latent tied to none."""
    known = [run for run in runs if any(name.startswith(TIED) for name in run.scores)]
    factors = [name.removeprefix(TIED) for run in known[:1] for name in run.scores if name.startswith(TIED)]
    pairs = {name: [median(scores_of(known, kind + name)) for kind in (TIED, FREE)] for name in factors}
    return {name: " and ".join(f"{value:.2f}" for value in pair) for name, pair in pairs.items()}
