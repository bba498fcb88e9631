"""Make picture sets such as a user brings: icons, letters, emoji, digits, clothes, photos, shapes on three backgrounds.

    python tools/picture_sets.py FOLDER [NAME ...]

Each set is one .npz file with `images` and, where they are known, `factors`. They are drawn from what packages hold:
Debian's fonts-font-awesome, fonts-noto-color-emoji, fonts-dejavu-core, fonts-liberation, fonts-urw-base35 and
dataset-fashion-mnist (Fashion-MNIST by Zalando SE, MIT licence), and the photos of scikit-learn and scikit-image.
Nothing is downloaded.
"""

import colorsys
import gzip
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

FONTS = Path("/usr/share/fonts")
FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")
SIDE = 64
Arrays = dict[str, np.ndarray]


def icons() -> Arrays:
    """Five icons in eight hues on light paper."""
    font, symbols = FONTS / "opentype/font-awesome/FontAwesome.otf", "\uf004\uf005\uf0f4\uf1b9\uf06c"
    sizes = {"icon": 5, "x": 8, "y": 8, "size": 4, "rotation": 8, "hue": 8}

    def draw(icon: int, x: int, y: int, size: int, rotation: int, hue: int) -> Image.Image:
        colour = _colour(hue / 8, 0.8, 0.75)
        mark = _turned_glyph(symbols[icon], ImageFont.truetype(font, 14 + 4 * size), 45 * rotation)
        return _placed(mark, colour, (245, 240, 228), (20 + 3.4 * x, 20 + 3.4 * y))

    return _drawn(sizes, draw, 3_000)


def letters() -> Arrays:
    """Ten letters of four fonts, black on white, in grey."""
    fonts = [
        FONTS / "truetype/dejavu/DejaVuSans.ttf",
        FONTS / "truetype/dejavu/DejaVuSerif.ttf",
        FONTS / "truetype/liberation/LiberationMono-Bold.ttf",
        FONTS / "opentype/urw-base35/Z003-MediumItalic.otf",
    ]
    sizes = {"letter": 10, "font": 4, "size": 4, "x": 8, "y": 8}

    def draw(letter: int, font: int, size: int, x: int, y: int) -> Image.Image:
        mark = _turned_glyph("AEGKMQRSTX"[letter], ImageFont.truetype(fonts[font], 18 + 6 * size), 0)
        return _placed(mark, (0, 0, 0), (255, 255, 255), (22 + 2.8 * x, 22 + 2.8 * y)).convert("L")

    return _drawn(sizes, draw, 3_000)


def emoji() -> Arrays:
    """Two thousand emoji on white, without factors."""
    font = ImageFont.truetype(FONTS / "truetype/noto/NotoColorEmoji.ttf", 109)
    blocks = (range(0x1F300, 0x1F650), range(0x1F680, 0x1F700), range(0x1F900, 0x1FA00), range(0x2600, 0x27C0))
    pictures = []
    for code in (code for block in blocks for code in block):
        picture = Image.new("RGB", (136, 128), "white")
        ImageDraw.Draw(picture).text((0, 0), chr(code), font=font, embedded_color=True)
        if np.ptp(np.asarray(picture)) > 40:
            pictures.append(np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.LANCZOS)))
    flipped = [picture[:, ::-1] for picture in pictures]
    return {"images": np.stack([*pictures, *flipped])[:2_000]}


def digits() -> Arrays:
    """Scikit-learn's handwritten digits, white on black, in grey."""
    from sklearn.datasets import load_digits

    loaded = load_digits()
    pictures = [Image.fromarray((255 * image / 16).astype(np.uint8)) for image in loaded.images]
    images = [np.asarray(picture.resize((32, 32), Image.Resampling.BICUBIC)) for picture in pictures]
    return {"images": np.stack(images), "factors": loaded.target[:, None], "factor_names": np.array(["digit"])}


def clothes() -> Arrays:
    """Two thousand photos of each of Fashion-MNIST's ten articles, white on black, in grey."""
    if not FASHION_MNIST.is_dir():
        raise SystemExit("the photos of clothes come from a package of Debian: apt install dataset-fashion-mnist")

    def bytes_of(name: str, header: int) -> np.ndarray:
        return np.frombuffer(gzip.decompress((FASHION_MNIST / name).read_bytes()), np.uint8, offset=header)

    images = bytes_of("train-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)
    articles = bytes_of("train-labels-idx1-ubyte.gz", 8)
    chosen = np.concatenate([np.flatnonzero(articles == article)[:2_000] for article in range(10)])
    return {"images": images[chosen], "factors": articles[chosen, None], "factor_names": np.array(["article"])}


def photos() -> Arrays:
    """Patches of photos at 128x128."""
    from sklearn.datasets import load_sample_images

    spec = find_spec("skimage")
    if spec is None or spec.origin is None:
        raise SystemExit("the photos come from scikit-image: pip install scikit-image")
    names = ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg", "motorcycle_left.png")
    folder = Path(spec.origin).parent / "data"
    whole = [*load_sample_images().images, *(np.asarray(Image.open(folder / name).convert("RGB")) for name in names)]
    generator, patches = np.random.default_rng(0), []
    for number in range(4_000):
        photo = whole[number % len(whole)]
        top, left = (generator.integers(side - 128) for side in photo.shape[:2])
        patches.append(photo[top : top + 128, left : left + 128])
    return {"images": np.stack(patches)}


def dark() -> Arrays:
    """Coloured discs, squares and triangles on black."""
    return _shapes((0, 0, 0), 0.9)


def light() -> Arrays:
    """Coloured discs, squares and triangles on white."""
    return _shapes((255, 255, 255), 0.9)


def low_contrast() -> Arrays:
    """Grey discs, squares and triangles, a little lighter or darker than the grey behind them."""
    sizes = {"shape": 3, "size": 4, "x": 8, "y": 8, "grey": 4}

    def draw(shape: int, size: int, x: int, y: int, grey: int) -> Image.Image:
        level = (104, 116, 140, 152)[grey]
        mark = _shape(shape, 10 + 4 * size)
        return _placed(mark, (level,) * 3, (128,) * 3, (20 + 3.4 * x, 20 + 3.4 * y)).convert("L")

    return _drawn(sizes, draw, 3_000)


SETS: dict[str, Callable[[], Arrays]] = {
    each.__name__: each for each in (icons, letters, emoji, digits, clothes, photos, dark, light, low_contrast)
}


def _shapes(background: tuple[int, ...], value: float) -> Arrays:
    sizes = {"shape": 3, "hue": 8, "size": 4, "x": 8, "y": 8}

    def draw(shape: int, hue: int, size: int, x: int, y: int) -> Image.Image:
        mark = _shape(shape, 10 + 4 * size)
        return _placed(mark, _colour(hue / 8, 0.9, value), background, (20 + 3.4 * x, 20 + 3.4 * y))

    return _drawn(sizes, draw, 3_000)


def _drawn(sizes: dict[str, int], draw: Callable[..., Image.Image], count: int) -> Arrays:
    """Distinct combinations of factor values, and their pictures."""
    chosen = np.random.default_rng(0).choice(int(np.prod(list(sizes.values()))), count, replace=False)
    factors = np.stack(np.unravel_index(chosen, tuple(sizes.values())), axis=1)
    images = np.stack([np.asarray(draw(*map(int, row))) for row in factors])
    return {"images": images, "factors": factors, "factor_names": np.array(list(sizes))}


def _colour(hue: float, saturation: float, value: float) -> tuple[int, ...]:
    return tuple(round(255 * part) for part in colorsys.hsv_to_rgb(hue, saturation, value))


def _turned_glyph(text: str, font: ImageFont.FreeTypeFont, degrees: int) -> Image.Image:
    """A mask of a glyph, rotated about its middle."""
    left, top, right, bottom = font.getbbox(text)
    mark = Image.new("L", (int(right - left) + 2, int(bottom - top) + 2))
    ImageDraw.Draw(mark).text((1 - left, 1 - top), text, fill=255, font=font)
    return mark.rotate(degrees, Image.Resampling.BICUBIC, expand=True)


def _shape(shape: int, side: int) -> Image.Image:
    """A mask, drawn four times as large and made smaller, so that its edges are smooth."""
    mark, far = Image.new("L", (4 * side, 4 * side)), 4 * side - 1
    pen = ImageDraw.Draw(mark)
    if shape == 0:
        pen.ellipse((0, 0, far, far), fill=255)
    elif shape == 1:
        pen.rectangle((0, 0, far, far), fill=255)
    else:
        pen.polygon([(0, far), (far / 2, 0), (far, far)], fill=255)
    return mark.resize((side, side), Image.Resampling.LANCZOS)


def _placed(
    mark: Image.Image, colour: tuple[int, ...], background: tuple[int, ...], middle: tuple[float, float]
) -> Image.Image:
    picture = Image.new("RGB", (SIDE, SIDE), background)
    corner = (round(middle[0] - mark.width / 2), round(middle[1] - mark.height / 2))
    picture.paste(Image.new("RGB", mark.size, colour), corner, mark)
    return picture


def main(folder: Path, names: list[str]) -> None:
    """Write the named sets, or all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or SETS:
        arrays = SETS[name]()
        np.savez_compressed(folder / f"{name}.npz", **arrays)
        print(f"{name}: {arrays['images'].shape}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
