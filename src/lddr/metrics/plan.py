"""One encoding: which distinct images do all metrics together need, and a table of the codes of exactly those."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.arrays import as_array
from lddr.data.dataset import Dataset, Images, stream
from lddr.data.factors import Factor, FactorSpace, FactorTable, Indices
from lddr.errors import UserError
from lddr.metrics.metric import Metric, UndefinedError
from lddr.metrics.samples import Draws, EncodedImages

Encode = Callable[[Images], ArrayLike]  # → (count, latents)

BATCH = 512
BLOCK = 16  # images whose colours and noise, where a dataset has such chance, come from one generator


@dataclass(frozen=True)
class Plan:
    """What every metric draws, why some cannot, and the distinct images behind all draws."""

    draws: dict[str, Draws]
    undefined: dict[str, str]
    images: Indices  # (distinct,), in order

    @property
    def drawn(self) -> int:
        return sum(numbers.size for parts in self.draws.values() for numbers in parts.values())


def planned(space: FactorSpace, metrics: Mapping[str, Metric], seed: int) -> Plan:
    """All draws of all metrics; each metric has a stream of its own, so that company changes nothing.

    Where only some images are labelled, a metric that needs factors looks at the images whose factors are all known:
    as there may be few, they are divided among its parts and not drawn with replacement. Other metrics draw from all.
    """
    draws, undefined = {}, {}
    known, images = labelled(space)
    for name, metric in metrics.items():
        try:
            check_factors(metric, known)
            if metric.labels and images is not None:
                draws[name] = {part: images[numbers] for part, numbers in _of_few(known, metric, seed).items()}
            else:
                draws[name] = metric.draw(space, stream(seed, f"metric {name}"))
        except UndefinedError as reason:
            undefined[name] = str(reason)
    numbers = [array.ravel() for parts in draws.values() for array in parts.values()]
    return Plan(draws, undefined, np.unique(np.concatenate([np.zeros(0, np.int64), *numbers])))


def _of_few(space: FactorSpace, metric: Metric, seed: int) -> Draws:
    if metric.needs == "codes":
        return divided(metric, space.size, seed)
    return metric.draw(space, stream(seed, f"metric {metric.name}"))


def divided(metric: Metric, count: int, seed: int) -> Draws:
    """Samples 0 … count - 1, each in at most one part of the metric, in the proportion of the parts' sizes."""
    wanted = metric.parts
    if not wanted:
        return {}
    share = min(1.0, count / sum(wanted.values()))
    order: Indices = stream(seed, f"metric {metric.name}").permutation(count)
    ends = np.cumsum([round(share * size) for size in wanted.values()])
    if share < 1:
        ends[-1] = count
    return {part: order[first:last] for part, first, last in zip(wanted, [0, *ends], ends, strict=False)}


def labelled(space: FactorSpace) -> tuple[FactorSpace, Indices | None]:
    """The factor space of the images whose factors are all known, and their numbers; None if that is all of them."""
    if space.is_complete or not isinstance(space, FactorTable):
        return space, None
    images = space.fully_labelled()
    return space.subset(images), images


def check_factors(metric: Metric, space: FactorSpace) -> None:
    """Refuse a metric that needs factors where there are none that vary, or no image has them all."""
    if metric.labels and space.factors and not space.size:
        raise UndefinedError(f"no image has all of its factors labelled: {', '.join(space.names)}")
    if metric.labels and not any(size > 1 for size in space.sizes):
        raise UndefinedError("there are no ground-truth factors with at least two values to compare the codes with")


def encoded(
    dataset: Dataset,
    space: FactorSpace,
    images: Indices,
    encode: Encode,
    seed: int,
    tell: Callable[[float], None] = lambda count: None,
) -> EncodedImages:
    """The table of codes of these images, each encoded once; `tell` hears how many are done.

    It takes 4 bytes per image and latent, and images are held a batch at a time.
    """
    codes: NDArray[np.float32] | None = None
    done = 0
    for pictures in pictures_of(dataset, images, seed):
        part = _checked(encode(pictures), len(pictures))
        codes = np.empty((len(images), part.shape[1]), np.float32) if codes is None else codes
        if part.shape[1] != codes.shape[1]:
            raise UserError(f"represent gave {codes.shape[1]} latents for one batch and {part.shape[1]} for another")
        codes[done : done + len(part)] = part
        done += len(part)
        tell(len(part))
    return EncodedImages(space, images, np.zeros((0, 0), np.float32) if codes is None else codes)


def pictures_of(dataset: Dataset, images: Indices, seed: int) -> Iterator[Images]:
    """Images in batches; where chance has a part in them, it depends on the image's number and the seed alone."""
    for first in range(0, len(images), BATCH):
        numbers = images[first : first + BATCH]
        yield dataset.images(numbers) if dataset.is_fixed else _by_blocks(dataset, numbers, seed)


def _by_blocks(dataset: Dataset, numbers: Indices, seed: int) -> Images:
    """Whole blocks of neighbouring numbers, each with a generator of its own, of which the wanted ones are taken."""
    blocks = np.unique(numbers // BLOCK)
    parts = []
    for block in blocks:
        members = np.arange(block * BLOCK, min((block + 1) * BLOCK, len(dataset)))
        drawn = dataset.images(members, stream(seed, "metric images", int(block)))
        parts.append(drawn[np.isin(members, numbers)])
    return np.concatenate(parts)


def _checked(codes: ArrayLike, count: int) -> NDArray[np.float32]:
    array = as_array(codes)
    if array.ndim != 2 or len(array) != count:
        raise UserError(f"represent must give codes of shape ({count}, latents) for {count} images, not {array.shape}")
    if not np.isfinite(array).all():
        raise UserError("represent gave codes that are not finite; mend the model before it is scored")
    return array.astype(np.float32)


def scorable(space: FactorSpace, bins: int | None = None) -> tuple[FactorSpace, dict[str, str]]:
    """The same images with the factors that can be scored, and why the others cannot.

    A column of numbers of which most occur once is continuous: it is put into `bins` equal bins, or left out. Unknown
    values stay unknown.
    """
    if not isinstance(space, FactorTable):
        return space, {}
    factors, columns, left_out = [], [], {}
    for factor, column, known in zip(space.factors, space.rows.T, space.known.T, strict=True):
        images = int(known.sum())
        if not _is_continuous(factor, images):
            factors.append(factor)
            columns.append(column)
        elif bins is None:
            reason = f"continuous: {factor.size} different numbers in {images} images; --bins 20 puts it into bins"
            left_out[factor.name] = reason
        else:
            numbers = np.asarray(factor.values)[column[known]]
            edges = np.histogram_bin_edges(numbers, bins)
            factors.append(Factor(factor.name, bins))
            binned = column.copy()
            binned[known] = np.digitize(numbers, edges[1:-1])
            columns.append(binned)
    rows = np.stack(columns, axis=1) if columns else np.zeros((space.size, 0), np.int64)
    return FactorTable(factors, rows), left_out


def _is_continuous(factor: Factor, images: int) -> bool:
    numeric = factor.values is not None and not any(isinstance(value, str) for value in factor.values)
    return numeric and factor.size > max(2, images / 2)
