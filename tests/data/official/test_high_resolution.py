from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lddr.data.factors import Factor, FactorGrid
from lddr.data.official.high_resolution import Falcor3D, Isaac3D, NumberedPictures
from lddr.errors import UserError

SMALL = FactorGrid((Factor("lighting", 3), Factor("camera", 4)))


def picture(number: int, side: int = 128) -> np.ndarray:
    """The factors of an image in its first channels, and a pixel in the corner whose block has a mean with a half."""
    image = np.zeros((side, side, 3), np.uint8)
    image[..., :2] = np.unravel_index(number, SMALL.sizes)
    image[0, 0, 2] = 10  # (10 + 0 + 0 + 0) / 4 = 2.5
    return image


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> type[NumberedPictures]:
    """Falcor3D with twelve images."""
    folders = {"Falcor3D_down128/images": 128, "Falcor3D/images": 1024}
    files = tuple(tuple(f"{folder}/{number}.png" for folder in folders) for number in ("000000", "000011"))
    monkeypatch.setattr(Falcor3D, "space", SMALL)
    monkeypatch.setattr(Falcor3D, "files", files)
    return Falcor3D


def write(folder: Path, side: int = 128) -> Path:
    folder.mkdir(parents=True)
    for number in range(SMALL.size):
        Image.fromarray(picture(number, side)).save(folder / f"{number:06}.png", compress_level=1)
    (folder.parent / "train-rec.labels").touch()
    return folder


@pytest.mark.parametrize(("name", "side", "corner"), [("Falcor3D_down128", 128, 3), ("Falcor3D", 1024, 0)])
def test_images_are_block_means_in_the_order_of_the_factors(
    data: Path, small: type[NumberedPictures], name: str, side: int, corner: int
) -> None:
    write(data / name / "images", side)
    dataset = small()
    images, factors = dataset[:]
    assert images.shape == (12, 64, 64, 3)
    np.testing.assert_array_equal(images[:, 5, 5, :2], factors)
    assert (images[:, 0, 0, 2] == corner).all(), "2.5 is rounded up, 10/256 down"
    assert small().rows.path == dataset.rows.path, "converted once"


def test_the_published_order_of_the_factors() -> None:
    """The strides of the owners' README."""
    strides = {"lighting intensity": 46656, "lighting x": 7776, "lighting y": 1296, "lighting z": 216}
    strides |= {"camera x": 36, "camera y": 6, "camera z": 1}
    for name, stride in strides.items():
        factors = Falcor3D.space.factors_of([stride])[0]
        assert [Falcor3D.space.names[place] for place in np.flatnonzero(factors)] == [name]
    assert Isaac3D.space.sizes == (3, 8, 5, 4, 4, 4, 6, 4, 4)
    for place, stride in enumerate((245760, 30720, 6144, 1536, 384, 96, 16, 4, 1)):
        np.testing.assert_array_equal(np.flatnonzero(Isaac3D.space.factors_of([stride])[0]), [place])


@pytest.mark.parametrize("change", ["missing", "one more"])
def test_another_number_of_pictures_is_refused(data: Path, small: type[NumberedPictures], change: str) -> None:
    folder = write(data / "Falcor3D_down128/images")
    (folder / "000003.png").unlink() if change == "missing" else (folder / "000012.png").touch()
    found = 11 if change == "missing" else 13
    with pytest.raises(UserError, match=rf"images: expected 12 pictures \(\*\.png\), found {found}"):
        small()


@pytest.mark.parametrize(
    ("image", "sentence"),
    [
        (np.zeros((64, 64, 3), np.uint8), "expected 128x128 pixels in the mode RGB, found 64x64 in the mode RGB"),
        (np.zeros((128, 128), np.uint8), "expected 128x128 pixels in the mode RGB, found 128x128 in the mode L"),
        (b"not a picture", "expected a whole PNG picture, found a broken one"),
        (None, "expected a whole PNG picture, found a broken one"),
    ],
)
def test_another_picture_is_refused(
    data: Path, small: type[NumberedPictures], image: np.ndarray | bytes | None, sentence: str
) -> None:
    path = write(data / "Falcor3D_down128/images") / "000007.png"
    if isinstance(image, np.ndarray):
        Image.fromarray(image).save(path)
    else:
        path.write_bytes(path.read_bytes()[:80] if image is None else image)  # cut short, or something else
    with pytest.raises(UserError, match=rf"000007\.png: {sentence}"):
        small()
    assert not list((data.parent / "cache/lddr/arrays").glob("*.npy"))


def test_a_missing_last_picture_is_named(data: Path, small: type[NumberedPictures]) -> None:
    (write(data / "Falcor3D_down128/images") / "000011.png").unlink()
    with pytest.raises(UserError, match=r"^Falcor3D_down128/images/000011.png of Falcor3D not found .*drive\.google"):
        small()
