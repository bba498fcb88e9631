import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from lddr.data.pictures import Preparation
from lddr.errors import UserError
from lddr.explorer.pictures import as_bytes, from_upload, png, strip


def saved(picture, kind="PNG", **options):
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


@given(arrays(np.uint8, st.sampled_from([(4, 6, 1), (4, 6, 3)])))
def test_a_png_comes_back_as_it_was(picture):
    assert np.array_equal(from_upload(png(picture), Preparation(picture.shape)), picture)


def test_pictures_stand_side_by_side():
    pictures = np.arange(2 * 3 * 4 * 1, dtype=np.uint8).reshape(2, 3, 4, 1)
    assert np.array_equal(strip(pictures)[:, 4:], pictures[1])


def test_floats_are_rounded_and_kept_in_range():
    assert as_bytes(np.array([-1.0, 0.0, 0.5, 1.0, 2.0])).tolist() == [0, 0, 128, 255, 255]


@pytest.mark.parametrize(("colour", "behind"), [(255, 0), (0, 255)])
def test_what_is_transparent_gets_a_colour_that_shows_the_rest(colour, behind):
    picture = Image.new("RGBA", (8, 8), (colour, colour, colour, 0))
    picture.paste((colour, colour, colour, 255), (0, 0, 4, 8))
    seen = from_upload(saved(picture), Preparation((8, 8, 1)))[..., 0]
    assert np.all(seen[:, :4] == colour)
    assert np.all(seen[:, 4:] == behind)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_every_mode_is_brought_to_the_models_channels(mode, channels):
    picture = Image.new("L", (9, 5), 255).convert(mode) if mode != "I;16" else Image.new(mode, (9, 5), 65535)
    seen = from_upload(saved(picture), Preparation((16, 16, channels)))
    assert seen.shape == (16, 16, channels)
    assert seen.min() > 250


def test_a_photo_is_turned_as_its_camera_was_held():
    picture = Image.new("L", (16, 16))
    picture.paste(255, (0, 0, 16, 8))  # the upper half
    turned = Image.Exif()
    turned[0x0112] = 3  # upside down
    seen = from_upload(saved(picture, "JPEG", exif=turned), Preparation((16, 16, 1)))[..., 0]
    assert seen[12].mean() > 200 > 50 > seen[3].mean()


@given(st.binary(max_size=200))
def test_noise_is_refused_in_a_sentence(content):
    for head in (b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"BM", b"RIFF\0\0\0\0WEBP"):
        with pytest.raises(UserError):
            from_upload(head + content, Preparation((16, 16, 1)))
