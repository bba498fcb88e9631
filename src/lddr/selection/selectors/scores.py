"""Selectors by a score that a run already has."""

from lddr.selection.selector import Better, Candidates, Selector, Verdict, selectors

EVALUATE = "discrete models get it with: lddr evaluate RUN --metrics gap"
UNSUPERVISED = "get it with: lddr evaluate RUN --metrics unsupervised"
SIZES = ("num_latents", "num_categories")
LABELS = ("supervision", "labels", "label_seed", "num_categories")


def by_score(
    name: str, column: str, better: Better, summary: str, cure: str = "", same: tuple[str, ...] = (), title: str = ""
) -> Selector:
    """Make a score a selector; the cure says how a run gets it."""
    missing = f"has no {column}" + (f"; {cure}" if cure else "")

    def measure(candidates: Candidates) -> list[Verdict]:
        values = [run.number(column) for run in candidates.runs]
        return [missing if value is None else value for value in values]

    return selectors.register(name)(Selector(summary, better, "scores", measure, same, title))


by_score("gap", "gap", "lower", "smallest straight-through gap, the paper's", EVALUATE, title="Gap_ST")
RELATIVE = "smallest gap, as a share of the reconstruction error"
by_score("relative", "gap.relative", "lower", RELATIVE, EVALUATE, title="Gap_ST, relative")
CONFIDENT = "most confident posterior, all latents"
by_score("discreteness", "gap.confidence", "higher", CONFIDENT, EVALUATE, SIZES, "confidence")
SAMPLED = "get it with: lddr evaluate RUN --metrics elbo"
by_score("elbo", "elbo", "higher", "largest evidence lower bound, of samples", SAMPLED, title="ELBO")
NOISELESS = "largest ELBO of codes without noise, which is no bound"
by_score("elbo_noiseless", "elbo_noiseless", "higher", NOISELESS, title="ELBO without noise")
by_score("reconstruction", "reconstruction", "lower", "smallest reconstruction error")
INDEPENDENT = "smallest total correlation of the codes"
by_score("independence", "unsupervised", "lower", INDEPENDENT, UNSUPERVISED, title="total correlation")
APART = "decodings of independently drawn latents that pass for reconstructions"
by_score("pipe", "pipe", "higher", APART, "get it with: lddr evaluate RUN --metrics pipe", title="PIPE")
KEPT_APART = "smallest risk on labelled images kept apart"
by_score("validation", "validation_risk", "lower", KEPT_APART, "only supervised runs do", LABELS)
