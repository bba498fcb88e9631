"""Images drawn with one factor held: which factors can be, how many points hold each, what their codes say."""

from collections.abc import Callable, Mapping

import numpy as np

from lddr.data.factors import FactorSpace, FactorTable, Indices
from lddr.metrics.information import Floats, Whole
from lddr.metrics.metric import Sample, UndefinedError

SLICE = 500  # points looked up at a time: 500 x 64 pairs of 10 numbers are 5 MB


def holdable(space: FactorSpace, at_least: int) -> list[int]:
    """The factors that can be held while something else varies: two values or more, and two images per value."""
    found = [factor for factor in range(len(space.factors)) if 1 < len(occurring(space, factor)) <= space.size // 2]
    if len(found) < at_least:
        factors = "factor" if at_least == 1 else "factors"
        raise UndefinedError(
            f"at least {at_least} {factors} with two values or more, each shown by several images, must be there "
            f"to be held; the factors here are: {space} ({space.size} images)"
        )
    return found


def occurring(space: FactorSpace, factor: int) -> Whole:
    """The values of a factor that some image has: in a table, a bin or a value may be empty."""
    return np.unique(space.rows[:, factor]) if isinstance(space, FactorTable) else np.arange(space.sizes[factor])


def points_per_factor(generator: np.random.Generator, factors: list[int], points: int) -> dict[int, int]:
    """How many points hold each factor when every point picks one of them at random; those with none left out."""
    counts = generator.multinomial(points, np.full(len(factors), 1 / len(factors)))
    return {factor: int(count) for factor, count in zip(factors, counts, strict=True) if count}


def sharing(
    space: FactorSpace, generator: np.random.Generator, factor: int, shape: tuple[int, ...], together: int
) -> Indices:
    """Images (*shape, together) of which those along the last axis share the value that a random image has."""
    values = space.factors_of(space.sample(generator, shape))[..., factor]  # from an image: so the value occurs
    return space.sample_with(generator, factor, np.repeat(values[..., None], together, axis=-1))


def held_samples(samples: Mapping[str, Sample], part: str) -> dict[int, Sample]:
    """The samples of a part, "train 0", "train 2" …, by the number of the factor held."""
    names = {name: name.removeprefix(f"{part} ") for name in samples if name.startswith(f"{part} ")}
    return {int(factor): samples[name] for name, factor in names.items()}


def summarised(held: Mapping[int, Sample], summary: Callable[[Floats], Floats]) -> tuple[Floats, Whole]:
    """The summary (points, latents) of the codes of every point, slice by slice, and the factor held in each."""
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is refused later, in a sentence
        rows = [
            summary(sample[start : start + SLICE].codes)
            for sample in held.values()
            for start in range(0, len(sample), SLICE)
        ]
    return np.concatenate(rows), np.repeat(list(held), [len(sample) for sample in held.values()])
