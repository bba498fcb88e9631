"""Traversals that move: every latent goes through its values and back."""

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from lddr.report.drawing.traversals import Traversal, traversals
from lddr.report.loaded import LoadedRun

if TYPE_CHECKING:
    from PIL.Image import Image

SIX_FRAMES_A_SECOND = 160  # milliseconds to a frame


def animation(loaded: LoadedRun, size: int = 96) -> bytes:
    """A GIF file with all latents of a model side by side."""
    first, *others = frames(traversals(loaded, columns=None), size)
    content = BytesIO()
    first.save(content, "GIF", save_all=True, append_images=others, duration=SIX_FRAMES_A_SECOND, loop=0)
    return content.getvalue()


def frames(rows: Sequence[Traversal], size: int = 96, count: int = 12) -> list["Image"]:
    """Frames there and back; latents with few values stay longer on each."""
    there = np.linspace(0, 1, count)
    return [_frame(rows, moment, size) for moment in [*there, *there[-2:0:-1]]]


def _frame(rows: Sequence[Traversal], moment: float, size: int) -> "Image":
    from PIL import Image, ImageDraw, ImageFont

    from lddr.data.sheet import as_picture

    font, gap, top = ImageFont.load_default(size=max(9, size // 8)), 6, 2 * max(9, size // 8) + 8
    sheet = Image.new("RGB", (gap + len(rows) * (size + gap), top + size + gap), (255, 255, 255))
    pen = ImageDraw.Draw(sheet)
    for number, row in enumerate(rows):
        value = min(int(moment * len(row.pictures)), len(row.pictures) - 1)
        left = gap + number * (size + gap)
        pen.text((left + size / 2, top / 2), row.title, (40, 40, 40), font, anchor="mm", align="center")
        sheet.paste(as_picture((row.pictures[value].clip(0, 1) * 255).round().astype(np.uint8), size), (left, top))
    return sheet
