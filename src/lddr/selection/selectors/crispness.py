"""How sure a model is of its categories."""

from typing import TYPE_CHECKING

from lddr.selection.selector import Candidates, Verdict, selector

if TYPE_CHECKING:
    from lddr.selection.encoding import Encoded


@selector("crispness", "most confident posterior, latents in use", "higher")
def crispness(candidates: Candidates) -> list[Verdict]:
    """The largest posterior probability, mean over images and latents in use: the others are never sure."""
    return [shown if isinstance(shown, str) else _crispness(shown) for shown in map(candidates.encode, candidates.runs)]


def _crispness(shown: "Encoded") -> Verdict:
    if shown.confidence is None:
        return "has no categories"
    return float(shown.confidence[shown.active].mean()) if shown.active.any() else "has no latent in use"
