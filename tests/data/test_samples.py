import numpy as np
import pytest
from PIL import Image

from lddr.data.dataset import stream
from lddr.data.in_memory import ArrayDataset
from lddr.data.load import load_dataset
from lddr.data.samples import MOST_SAMPLES, Samples, choose_samples, read_samples, write_samples
from lddr.errors import UserError

GENERATOR = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(8, 8, 1), (16, 24, 3)])
@pytest.mark.parametrize("count", [1, 5, MOST_SAMPLES])
def test_samples_are_read_as_they_were_written(tmp_path, shape, count):
    images = GENERATOR.integers(256, size=(count, *shape), dtype=np.uint8)
    write_samples(tmp_path / "samples.png", images)
    assert np.array_equal(read_samples(tmp_path / "samples.png", shape), images)


@pytest.mark.parametrize(
    ("picture", "sentence"),
    [
        (Image.new("L", (32, 9)), "1 to 64 images of 8x8 side by side, found 9x32 pixels"),
        (Image.new("L", (33, 8)), "found 8x33 pixels"),
        (Image.new("L", (8 * (MOST_SAMPLES + 1), 8)), "found 8x520 pixels"),
        (Image.new("RGB", (32, 8)), "a picture of mode L, found RGB"),
        (Image.new("P", (32, 8)), "a picture of mode L, found P"),
    ],
)
def test_other_pictures_are_refused_before_they_are_decoded(tmp_path, monkeypatch, picture, sentence):
    picture.save(tmp_path / "samples.png")
    monkeypatch.setattr(Image.Image, "load", lambda *_: pytest.fail("it decodes the picture"))
    with pytest.raises(UserError, match=rf"samples\.png: expected .*{sentence}; replace that file, or delete it"):
        read_samples(tmp_path / "samples.png", (8, 8, 1))


@pytest.mark.parametrize("content", [b"", b"no picture", b"\x89PNG\r\n\x1a\n"])
def test_what_is_no_picture_is_a_sentence(tmp_path, content):
    (tmp_path / "samples.png").write_bytes(content)
    with pytest.raises(UserError, match="the sample images of a model"):
        read_samples(tmp_path / "samples.png", (8, 8, 1))


def test_a_picture_of_another_format_is_refused(tmp_path):
    Image.new("L", (32, 8)).save(tmp_path / "samples.png", "BMP")
    with pytest.raises(UserError, match="the sample images of a model"):
        read_samples(tmp_path / "samples.png", (8, 8, 1))


def test_different_images_are_chosen_always_the_same():
    images = GENERATOR.integers(256, size=(30, 8, 8, 1), dtype=np.uint8)
    chosen = choose_samples(ArrayDataset(images), 16)
    assert len({image.tobytes() for image in chosen} & {image.tobytes() for image in images}) == 16
    assert np.array_equal(choose_samples(ArrayDataset(images), 16), chosen)
    assert np.array_equal(choose_samples(ArrayDataset(images), 31), images)
    assert choose_samples(load_dataset("circles", 16), 4).shape == (4, 16, 16, 1)


def test_no_sample_is_drawn_twice_before_all_are_drawn_once():
    samples = Samples(np.repeat(np.arange(6, dtype=np.uint8), 64).reshape(6, 8, 8, 1))
    assert (len(samples), samples.image_shape, samples.space.factors) == (6, (8, 8, 1), ())
    assert len({image.tobytes() for image in samples.draw(stream(0, "test"), 6)}) == 6
    drawn = samples.space.sample(stream(0, "test"), (3, 4))
    assert np.array_equal(np.bincount(drawn.ravel()), [2] * 6)
