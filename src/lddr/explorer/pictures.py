"""Pictures that leave as PNG, and pictures that strangers send."""

import base64
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lddr.data.pictures import Preparation
from lddr.errors import UserError

PICTURE_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/bmp": "BMP"}
LARGEST_UPLOAD = 5_000_000  # bytes
MOST_PIXELS = 16_000_000  # a few kilobytes can claim to be a picture of many gigabytes

Pixels = NDArray[np.uint8]  # (height, width, channels)


def as_bytes(images: NDArray[np.floating]) -> NDArray[np.uint8]:
    """[0, 1] → 0 … 255."""
    return np.rint(255 * np.clip(images, 0, 1)).astype(np.uint8)


def png(picture: Pixels) -> bytes:
    """The bytes of a PNG file, packed fast rather than small."""
    plain = picture[:, :, 0] if picture.shape[2] == 1 else picture
    buffer = BytesIO()
    Image.fromarray(np.ascontiguousarray(plain)).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def data_url(picture: Pixels) -> str:
    return "data:image/png;base64," + base64.b64encode(png(picture)).decode()


def strip(pictures: NDArray[np.uint8]) -> Pixels:
    """Side by side: (count, height, width, channels) → (height, count * width, channels)."""
    return np.concatenate(list(pictures), axis=1)


def from_upload(content: bytes, preparation: Preparation) -> Pixels:
    """What somebody sent, prepared as the pictures that a model was trained on."""
    try:
        with Image.open(BytesIO(content), formats=tuple(PICTURE_FORMATS.values())) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                raise UserError(f"this picture has {picture.width}x{picture.height} pixels; send a smaller one")
            return preparation.of_picture(picture)
    except UserError:
        raise
    except Exception as error:  # untrusted bytes
        raise UserError("this is no picture that can be read; send a PNG, JPEG, WebP or BMP file") from error
