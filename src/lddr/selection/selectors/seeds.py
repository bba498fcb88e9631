"""Selectors by what other seeds of the same settings find as well."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from lddr.runs.index import Run
from lddr.selection.selector import Candidates, Verdict, mean_rank, selector, selectors

if TYPE_CHECKING:
    from lddr.metrics.information import Whole
    from lddr.selection.encoding import Encoded


@selector("agreement", "categories that other seeds find as well", "higher")
def category_agreement(candidates: Candidates) -> list[Verdict]:
    """Median agreement of a model's categories with those of other seeds, latents matched one to one."""
    import numpy as np

    from lddr.selection.agreement import agreement

    def measure(models: "list[Encoded]") -> list[float]:
        pairs = agreement([grouped_categories(model) for model in models])
        return [float(np.median(np.delete(row, own))) for own, row in enumerate(pairs)]

    return among_seeds(candidates, measure, discrete=True)


def grouped_categories(model: "Encoded") -> "Whole":
    import numpy as np

    from lddr.selection.agreement import grouped

    assert model.categories is not None
    used = model.categories[:, model.active]
    return np.stack([grouped(column) for column in used.T], axis=1) if used.size else used


@selector("udr", "codes that other seeds find as well", "higher")
def unsupervised_ranking(candidates: Candidates) -> list[Verdict]:
    """UDR: median agreement of a model's codes with those of other seeds (Duan et al. 2020)."""
    from lddr.metrics.udr import udr

    return among_seeds(candidates, lambda models: list(udr([model.codes for model in models]).scores))


selectors.register("combined")(mean_rank(["agreement", "elbo"]))


def among_seeds(
    candidates: Candidates, measure: "Callable[[list[Encoded]], list[float]]", discrete: bool = False
) -> list[Verdict]:
    """Compare, as published, models that differ in nothing but the seed."""
    shown = [candidates.encode(run) for run in candidates.runs]
    verdicts: list[Verdict] = ["has no other seed of the same settings to be compared with"] * len(shown)
    seeds: dict[frozenset, list[int]] = {}
    for place, (run, seen) in enumerate(zip(candidates.runs, shown, strict=True)):
        if isinstance(seen, str):
            verdicts[place] = seen
        elif discrete and seen.categories is None:
            verdicts[place] = "has no categories"
        else:
            seeds.setdefault(all_but_seed(run), []).append(place)
    for places in seeds.values():
        if len(places) > 1:
            values = measure([shown[place] for place in places])  # type: ignore[misc]
            for place, value in zip(places, values, strict=True):
                verdicts[place] = value
    return verdicts


def all_but_seed(run: Run) -> frozenset:
    return frozenset(item for item in run.settings.items() if item[0] != "seed")
