"""Images drawn with one factor held: which factors can be, how many points hold each, what their codes say."""

from collections.abc import Callable, Mapping

import numpy as np

from lddr.data.factors import FactorSpace, FactorTable, Indices
from lddr.metrics.information import Floats, Whole
from lddr.metrics.metric import Samples, UndefinedError
from lddr.metrics.samples import Draws, Sample

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


def held_draws(
    space: FactorSpace, generator: np.random.Generator, points: Mapping[str, int], shape: tuple[int, ...], together: int
) -> Draws:
    """Points (*shape, together) that each hold one of the factors, picked at random; "train 3" holds factor 3.

    Draws are image numbers only, so that the factor held is in the name of the part.
    """
    factors, draws = holdable(space, at_least=2), {}
    for part, wanted in points.items():
        counts = generator.multinomial(wanted, np.full(len(factors), 1 / len(factors)))
        for factor, count in zip(factors, counts.tolist(), strict=True):
            if count:
                draws[f"{part} {factor}"] = sharing(space, generator, factor, (count, *shape), together)
    return draws


def sharing(
    space: FactorSpace, generator: np.random.Generator, factor: int, shape: tuple[int, ...], together: int
) -> Indices:
    """Images (*shape, together) of which those along the last axis share the value that a random image has."""
    values = space.factors_of(space.sample(generator, shape))[..., factor]  # from an image: so the value occurs
    return space.sample_with(generator, factor, np.repeat(values[..., None], together, axis=-1))


def held_samples(samples: Samples, part: str) -> dict[int, Sample]:
    """The samples of a part, "train 0", "train 2" …, by the number of the factor held."""
    names = {name: name.removeprefix(f"{part} ") for name in samples if name.startswith(f"{part} ")}
    return {int(factor): samples[name] for name, factor in names.items()}


def summarised(samples: Samples, part: str, summary: Callable[[Floats], Floats]) -> tuple[Floats, Whole]:
    """The summary (points, latents) of the codes of every point, slice by slice, and the factor held in each."""
    held = held_samples(samples, part)
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is refused later, in a sentence
        rows = [
            summary(sample[start : start + SLICE].codes)
            for sample in held.values()
            for start in range(0, len(sample), SLICE)
        ]
    return np.concatenate(rows), np.repeat(list(held), [len(sample) for sample in held.values()])
