"""What becomes of a picture, whoever it comes from: eight bits, nothing transparent, grey or in colours."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def flattened(picture: Image.Image, channels: int) -> Image.Image:
    """With 1 or 3 channels; what is transparent becomes black."""
    if picture.mode.startswith("I"):  # 16 bits: keep the upper eight
        picture = Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8))
    if picture.has_transparency_data:
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "black"), picture.convert("RGBA"))
    return picture.convert("L" if channels == 1 else "RGB")


def scaled(image: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """By Pillow's Lanczos filter: (height, width[, channels]) → (side, side, channels)."""
    if image.shape[:2] != (side, side):
        plain = image.squeeze(axis=2) if image.ndim == 3 and image.shape[2] == 1 else image
        picture = Image.fromarray(np.ascontiguousarray(plain))
        image = np.asarray(picture.resize((side, side), Image.Resampling.LANCZOS))
    return image.reshape(side, side, -1)


def arrangement(shape: tuple[int, ...]) -> tuple[int, Callable[[NDArray], NDArray]] | None:
    """The number of channels, and what brings (n, h, w), (n, h, w, c), (n, c, h, w) to (n, h, w, c); else None."""
    if len(shape) == 3:
        return 1, lambda images: images[..., np.newaxis]
    if len(shape) == 4 and shape[3] in (1, 3):
        return shape[3], lambda images: images
    if len(shape) == 4 and shape[1] in (1, 3):
        return shape[1], lambda images: images.transpose(0, 2, 3, 1)
    return None
