import numpy as np
import pytest
from PIL import Image

from lddr.data.pictures import (
    BLACK,
    WHITE,
    Preparation,
    as_bytes,
    as_hex,
    background_for,
    natural_size,
    stretched,
    visible_brightness,
)
from lddr.errors import UserError

RED, GREEN, BLUE = (200, 0, 0), (0, 200, 0), (0, 0, 200)


def striped(*colours, across=10):
    """Vertical stripes of 10 pixels, `across` pixels high."""
    picture = Image.new("RGB", (10 * len(colours), across))
    for number, colour in enumerate(colours):
        picture.paste(colour, (10 * number, 0, 10 * number + 10, across))
    return picture


def columns(image):
    """The colours from left to right in the middle row."""
    return [tuple(pixel) for pixel in image[len(image) // 2].tolist()]


def test_padding_keeps_the_aspect_ratio_and_takes_the_colour_of_the_edge_beside_it():
    tall = striped(RED, GREEN, BLUE, across=60)  # 30x60 becomes 16x32 in the middle of 32x32
    image = Preparation((32, 32, 3), "pad").of_picture(tall)
    assert np.all(image[:, :8] == image[0, 0])
    assert np.all(image[:, 24:] == image[0, 0])
    assert image[0, 0].tolist() == [100, 0, 100]  # the median of as much red as blue
    assert columns(image)[8:24] == columns(Preparation((32, 16, 3), "stretch").of_picture(tall))
    wide = tall.rotate(90, expand=True)
    assert np.array_equal(Preparation((32, 32, 3), "pad").of_picture(wide)[::-1].transpose(1, 0, 2), image)


def test_padding_takes_a_background_that_was_asked_for():
    image = Preparation.of((16, 16, 3), "pad", "orange").of_picture(striped(RED, GREEN))
    assert np.all(image[:4] == (255, 165, 0))
    assert np.all(image[12:] == (255, 165, 0))
    grey = Preparation.of((16, 16, 1), "pad", "#404040").of_picture(Image.new("L", (20, 10), 9))
    assert grey[:, 5, 0].tolist() == 4 * [64] + 8 * [9] + 4 * [64]


def test_cropping_keeps_the_middle_and_nothing_else():
    assert set(columns(Preparation((16, 16, 3), "crop").of_picture(striped(RED, GREEN, BLUE)))) == {GREEN}


def test_stretching_keeps_everything():
    seen = columns(Preparation((30, 30, 3), "stretch").of_picture(striped(RED, GREEN, BLUE)))
    assert (seen[5], seen[15], seen[25]) == (RED, GREEN, BLUE)


@pytest.mark.parametrize("fit", ["pad", "crop", "stretch", None])
def test_squares_are_the_same_whatever_the_fit(fit):
    picture = Image.fromarray(np.random.default_rng(0).integers(256, size=(40, 40, 3), dtype=np.uint8))
    expected = np.asarray(picture.resize((16, 16), Image.Resampling.LANCZOS))
    assert np.array_equal(Preparation((16, 16, 3), fit, BLACK).of_picture(picture), expected)


@pytest.mark.parametrize("size", [(1, 3000), (3000, 1), (1, 1), (17, 16)])
@pytest.mark.parametrize("fit", ["pad", "crop", "stretch"])
def test_every_aspect_ratio_fits(size, fit):
    assert np.all(Preparation((16, 16, 1), fit).of_picture(Image.new("L", size, 80)) == 80)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([[100, 1100], [2100, 4100]], np.uint16), [[0, 64], [128, 255]]),
        (np.full((2, 2), 0x8000, np.uint16), [[128, 128], [128, 128]]),  # nothing to stretch
        (np.array([[-4, 4]], np.int32), [[0, 255]]),
        (np.array([[0.2, 0.4]], np.float32), [[51, 102]]),  # floats in [0, 1] have a meaning
        (np.array([[-1.0, 0.0, 3.0]], np.float32), [[0, 64, 255]]),
    ],
)
def test_more_than_eight_bits_are_stretched_over_their_own_range(values, expected):
    assert stretched(values).tolist() == expected


def test_arrays_of_sixteen_bits_are_stretched_image_by_image():
    images = np.array([[[0, 10]], [[0, 1000]]], np.uint16)
    assert as_bytes(images).tolist() == [[[0, 255]], [[0, 255]]]


def transparent(light, alpha, share=0.5):
    """A picture of which a share is visible, in one grey."""
    pixels = np.zeros((10, 10, 4), np.uint8)
    pixels[..., :3] = light
    pixels[: int(10 * share), :, 3] = alpha
    return Image.fromarray(pixels)


def test_the_background_is_what_visible_pixels_differ_from_more():
    dark, light, clear = transparent(20, 255), transparent(240, 255), transparent(100, 0)
    assert visible_brightness(dark) == 20
    assert visible_brightness(Image.new("RGBA", (5, 5), (9, 9, 9, 255))) is None
    assert visible_brightness(Image.new("RGB", (5, 5))) is None
    for pictures, expected in (
        ([dark], WHITE),
        ([light], BLACK),
        ([dark, dark, light], WHITE),  # (20 + 20 + 240) / 3 = 93
        ([dark, light, light], BLACK),
        ([clear], BLACK),
        ([clear, dark], WHITE),
        ([], None),
        ([Image.new("RGB", (5, 5))], None),
    ):
        assert background_for(map(visible_brightness, pictures)) == expected


def test_half_transparent_pixels_count_half():
    pixels = np.zeros((1, 2, 4), np.uint8)
    pixels[0, :, :3], pixels[0, :, 3] = [[0], [210]], [255, 51]
    assert visible_brightness(Image.fromarray(pixels)) == pytest.approx(35)  # (0 · 1 + 210 · 0.2) / 1.2


@pytest.mark.parametrize(
    ("sizes", "resolution"),
    [
        ([(32, 32)], 32),
        ([(128, 128)] * 3, 128),
        ([(28, 28)], 28),
        ([(96, 48)] * 2, "48x96"),
        ([(512, 8)], "8x512"),
        ([(4000, 3000)], "384x512"),
        ([(6, 4)], "8x12"),
        ([(1000, 4)], "8x512"),
        ([(2, 400)], "512x8"),
        ([(128, 128), (128, 120)], 64),
        ([(10, 10), (30, 30), (2000, 2000)], 32),
    ],
)
def test_pictures_of_one_size_keep_it_and_others_become_usual_squares(sizes, resolution):
    assert natural_size(sizes) == resolution


def test_colours_have_one_name_and_mistakes_a_sentence():
    assert as_hex("White") == as_hex("#fff") == as_hex("rgb(255, 255, 255)") == WHITE
    with pytest.raises(UserError, match="background must be auto or a colour such as white or #ff8800, not 'whitish'"):
        as_hex("whitish")
    with pytest.raises(UserError, match=r"fit must be one of pad, crop, stretch, legacy, not 'croop'; did you mean"):
        Preparation.of((16, 16, 1), "croop", "auto")
    with pytest.raises(UserError, match="leave background out"):
        Preparation.of((16, 16, 1), "legacy", "white")


def test_what_is_done_is_said_where_it_matters():
    square, both = [(20, 20), (30, 30)], [(20, 20), (30, 40)]
    plain = "3 pictures of 20x20 to 30x30 pixels are read at 16x16 in grey"
    assert Preparation((16, 16, 1)).describe(3, square) == plain
    said = Preparation((16, 16, 3), "crop").on(WHITE).describe(3, both)
    assert "at 16x16 in colour; those that are not square are cropped (set fit to pad or stretch instead)" in said
    assert said.endswith("; transparent parts become white (set background for another colour)")
    wide = Preparation((48, 96, 3)).describe(2, [(96, 48)])
    assert wide == "2 pictures of 96x48 pixels are read at 96x48 (resolution 48x96) in colour"
    assert (
        Preparation((48, 96, 3))
        .describe(2, [(90, 48), (96, 48)])
        .endswith("; those of another aspect ratio are padded (set fit to crop or stretch instead)")
    )
    large = Preparation((384, 512, 3)).describe(1, [(4000, 3000)])
    assert large.endswith("at 512x384 (resolution 384x512) in colour, since images have sides of 8 to 512 pixels")
    assert "become" not in Preparation.of((16, 16, 3), "crop", "white").describe(3, both)
