"""Selectors by a score that a run already has."""

from lddr.selection.selector import Better, Candidates, Selector, Verdict, selectors

EVALUATE = "discrete models get it with: lddr evaluate RUN --metrics gap"
UNSUPERVISED = "get it with: lddr evaluate RUN --metrics unsupervised"
SIZES = ("num_latents", "num_categories")
LABELS = ("supervision", "labels", "label_seed", "num_categories")


def by_score(
    name: str, column: str, better: Better, summary: str, cure: str = "", same: tuple[str, ...] = ()
) -> Selector:
    """Make a score a selector; the cure says how a run gets it."""
    missing = f"has no {column}" + (f"; {cure}" if cure else "")

    def measure(candidates: Candidates) -> list[Verdict]:
        values = [run.number(column) for run in candidates.runs]
        return [missing if value is None else value for value in values]

    return selectors.register(name)(Selector(summary, better, "scores", measure, same))


by_score("gap", "gap", "lower", "smallest straight-through gap, the paper's", EVALUATE)
by_score("relative", "gap.relative", "lower", "smallest gap, as a share of the reconstruction error", EVALUATE)
by_score("discreteness", "gap.confidence", "higher", "most confident posterior, all latents", EVALUATE, SIZES)
by_score("elbo", "elbo", "higher", "largest evidence lower bound")
by_score("reconstruction", "reconstruction", "lower", "smallest reconstruction error")
by_score("independence", "unsupervised", "lower", "smallest total correlation of the codes", UNSUPERVISED)
KEPT_APART = "smallest risk on labelled images kept apart"
by_score("validation", "validation_risk", "lower", KEPT_APART, "only supervised runs do", LABELS)
