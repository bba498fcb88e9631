"""One picture of a dataset: a row for every factor with that factor varied, and rows of random images."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from lddr.data.dataset import Dataset, Images, stream
from lddr.data.factors import UNKNOWN, FactorSpace, FactorTable, Indices
from lddr.errors import UserError

COLUMNS, GAP, RANDOM_ROWS = 10, 4, 3
INK, PAPER = (40, 40, 40), (255, 255, 255)


class Row(NamedTuple):
    title: str
    columns: Indices  # where the images stand
    images: Images


def factor_sheet(dataset: Dataset, seed: int = 0, cell: int = 64) -> Image.Image:
    """Draw each factor varied around one random image, then random images; each is `cell` pixels wide."""
    generator = stream(seed, "sheet")
    base = _base(dataset.space, generator)
    rows = [_varied(dataset, base, factor, generator) for factor in range(len(dataset.space.factors))]
    rows += [_random("random" if row == 0 else "", dataset, generator) for row in range(RANDOM_ROWS)]
    return _paste(rows, cell)


def overview(chosen: Sequence[Dataset], seed: int = 0, cell: int = 64) -> Image.Image:
    """Draw a row of random images for each dataset."""
    generator = stream(seed, "overview")
    return _paste([_random(dataset.name, dataset, generator) for dataset in chosen], cell)


def _random(title: str, dataset: Dataset, generator: np.random.Generator) -> Row:
    return Row(title, np.arange(COLUMNS), dataset.images(dataset.space.sample(generator, COLUMNS), generator))


def _varied(dataset: Dataset, base: Indices, factor: int, generator: np.random.Generator) -> Row:
    """Return images with up to COLUMNS values of one factor, otherwise like `base`; a gap where no image has it."""
    space = dataset.space
    values = np.unique(np.linspace(0, space.sizes[factor] - 1, COLUMNS).round().astype(np.int64))
    wanted = np.repeat(space.factors_of(base)[np.newaxis], len(values), axis=0)
    wanted[:, factor] = values
    found = [(column, index) for column, row in enumerate(wanted) if (index := _like(space, row, factor)) is not None]
    columns, indices = np.array(found, np.int64).reshape(-1, 2).T
    return Row(space.names[factor], columns, dataset.images(indices, generator))


def _base(space: FactorSpace, generator: np.random.Generator) -> Indices:
    """Return a random image, with all factors labelled if only some have them."""
    if isinstance(space, FactorTable) and not space.is_complete and len(whole := space.fully_labelled()):
        return generator.choice(whole)
    return space.sample(generator, 1)[0]


def _like(space: FactorSpace, factors: Indices, fixed: int) -> int | None:
    """Return the image with these factors, or the most similar one with the fixed factor's value; None without one."""
    try:
        return int(space.indices_of(factors))
    except UserError:
        rows = space.factors_of(np.arange(space.size))
    is_known = (rows != UNKNOWN) & (factors != UNKNOWN)
    distances = np.where(is_known, np.abs(rows - factors) / space.sizes, 1.0).sum(axis=1)
    distances[rows[:, fixed] != factors[fixed]] = np.inf
    return int(distances.argmin()) if np.isfinite(distances).any() else None


def _paste(rows: Sequence[Row], cell: int) -> Image.Image:
    font = ImageFont.load_default(size=max(10, cell // 5))
    margin = 2 * GAP + int(max(font.getlength(row.title) for row in rows))
    sheet = Image.new("RGB", (margin + COLUMNS * (cell + GAP), GAP + len(rows) * (cell + GAP)), PAPER)
    pen = ImageDraw.Draw(sheet)
    for number, row in enumerate(rows):
        top = GAP + number * (cell + GAP)
        pen.text((margin - GAP, top + cell // 2), row.title, INK, font, anchor="rm")
        for column, image in zip(row.columns, row.images, strict=True):
            sheet.paste(as_picture(image, cell), (margin + int(column) * (cell + GAP), top))
    return sheet


def as_picture(image: Images, size: int) -> Image.Image:
    """Return one image (height, width, channels) as an RGB picture, `size` pixels wide, with sharp pixels."""
    channels = np.broadcast_to(image, (*image.shape[:2], 3))
    return Image.fromarray(np.ascontiguousarray(channels)).resize((size, size), Image.Resampling.NEAREST)
