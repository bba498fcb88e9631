"""ModelCentrality (Lin et al. 2020), on images of the dataset: the model that is most like all the others."""

from typing import TYPE_CHECKING

from lddr.selection.selector import Candidates, Verdict, selector

if TYPE_CHECKING:
    from lddr.metrics.information import Floats, Whole
    from lddr.selection.encoding import Encoded

VOTES, GROUP = 500, 16  # rounds of FactorVAE's score, and images in each


SUMMARY = "codes that stand for the others' codes (ModelCentrality on dataset images, not on decoded samples)"


@selector("centrality", SUMMARY, "higher")
def model_centrality(candidates: Candidates) -> list[Verdict]:
    """Mean likeness to all other models, whatever their settings.

    Likeness is FactorVAE's score of one model's codes with the other's as the truth, mean of both ways.

    Not as published: images that share a value of a factor are images of the dataset for which the other model's latent
    falls into the same of at most 16 groups. The authors decode samples of the other model's prior with that latent
    held, and encode those, for which every model would have to encode the samples of every other.
    """
    import numpy as np

    shown = [candidates.encode(run) for run in candidates.runs]
    verdicts: list[Verdict] = [seen if isinstance(seen, str) else "there is no other to be like" for seen in shown]
    places = [place for place, seen in enumerate(shown) if not isinstance(seen, str)]
    if len(places) < 2:
        return verdicts
    likeness = alike([shown[place] for place in places])  # type: ignore[misc]
    for own, place in enumerate(places):
        verdicts[place] = float(np.delete(likeness[own], own).mean())
    return verdicts


def alike(models: "list[Encoded]") -> "Floats":
    """(models, models), symmetric, from 0 to 1."""
    import numpy as np

    grouped = [truths(model) for model in models]
    scores = np.array([[vote_score(truth, model) for model in models] for truth in grouped])
    return (scores + scores.T) / 2


def truths(model: "Encoded") -> "Whole":
    """The latents in use as factors of at most 16 values, (samples, latents in use)."""
    import numpy as np

    from lddr.selection.agreement import grouped

    used = model.codes[:, model.active]
    return np.stack([grouped(column) for column in used.T], axis=1) if used.size else used.astype(np.int64)


def vote_score(truth: "Whole", model: "Encoded") -> float:
    """FactorVAE's score of a model's codes for factors (samples, factors) of the same images.

    Images that share a value of one factor: which latent varies least among them? The score is how often that is the
    latent which stands for this factor most often.
    """
    import numpy as np

    codes = model.codes[:, model.active]
    if not codes.size or not truth.size:
        return 0.0
    factors, members = drawn_groups(truth)
    least = (codes[members].var(axis=1) / codes.var(axis=0)).argmin(axis=1)  # (votes,)
    table = np.zeros((codes.shape[1], truth.shape[1]))
    np.add.at(table, (least, factors), 1)
    return float(table.max(axis=1).sum() / len(least))


def drawn_groups(truth: "Whole") -> "tuple[Whole, Whole]":
    """A factor for each vote, and images that share a value of it: (votes,) and (votes, images)."""
    import numpy as np

    from lddr.data.dataset import stream

    generator = stream(0, "centrality")
    factors = generator.integers(truth.shape[1], size=VOTES)
    centres, luck = generator.integers(len(truth), size=VOTES), generator.random((VOTES, GROUP))
    members = np.empty((VOTES, GROUP), np.int64)
    for vote, (factor, centre) in enumerate(zip(factors, centres, strict=True)):
        column = truth[:, factor]
        sharing = np.flatnonzero(column == column[centre])
        members[vote] = sharing[(luck[vote] * len(sharing)).astype(np.int64)]
    return factors, members
