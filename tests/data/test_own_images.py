import numpy as np
import pytest
from PIL import Image

from lddr.data import pictures
from lddr.data.dataset import identity, stream
from lddr.data.load import load_dataset
from lddr.errors import UserError


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def flat(folder, name, colour, size=(20, 30), mode="RGB"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)


def test_pictures_are_sorted_scaled_and_coloured(tmp_path):
    for name, colour in (
        ("b.jpg", (0, 200, 0)),
        ("a.png", (200, 0, 0)),
        ("sub/c.PNG", (0, 0, 200)),
        ("sub/d.webp", (0, 0, 200)),
    ):
        flat(tmp_path, name, colour)
    (tmp_path / "notes.txt").write_text("no picture")
    dataset = load_dataset(str(tmp_path))
    assert dataset.image_shape == (30, 20, 3)
    assert len(dataset) == 4
    assert dataset.space.names == ()
    colours = [[200, 0, 0], [0, 200, 0], [0, 0, 200], [0, 0, 200]]
    assert np.allclose(dataset.images([0, 1, 2, 3]).mean(axis=(1, 2)), colours, atol=3)
    assert dataset.batch(0, 0, 5).shape == (5, 30, 20, 3)
    assert load_dataset(str(tmp_path), "15x10").image_shape == (15, 10, 3)
    flat(tmp_path, "larger.png", (0, 0, 0), size=(40, 60))
    assert load_dataset(str(tmp_path)).image_shape == (32, 32, 3)  # of several sizes


def test_grey_pictures_give_one_channel_and_one_coloured_among_them_gives_three(tmp_path):
    flat(tmp_path, "a.png", 100, mode="L")
    flat(tmp_path, "b.png", 200, mode="L")
    assert load_dataset(str(tmp_path)).images([0, 1])[:, 5, 5].tolist() == [[100], [200]]
    flat(tmp_path, "c.png", (10, 20, 30))
    assert load_dataset(str(tmp_path)).images([0, 2])[:, 5, 5].tolist() == [[100] * 3, [10, 20, 30]]


def half(colour, mode="RGBA", size=(16, 16)):
    """The left half in a colour, the right one transparent."""
    picture = Image.new("RGBA", size, (*colour, 0))
    picture.paste((*colour, 255), (0, 0, size[0] // 2, size[1]))
    return picture if mode == "RGBA" else picture.convert(mode)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
@pytest.mark.parametrize(("colour", "behind"), [((30, 30, 30), 255), ((220, 220, 220), 0)])
def test_transparent_pictures_get_the_background_that_shows_them(tmp_path, mode, colour, behind):
    half(colour, mode).save(tmp_path / "a.png")
    dataset = load_dataset(str(tmp_path))
    (image,) = dataset.images([0])
    assert np.all(image[:, :8] == colour[0])
    assert np.all(image[:, 8:] == behind)
    assert f"transparent parts become {'white' if behind else 'black'}" in dataset.reading
    assert np.array_equal(load_dataset(str(tmp_path)).images([0])[0], image)  # from the cache


def test_a_palette_with_a_transparent_entry_is_transparent(tmp_path):
    picture = Image.new("P", (16, 16), 1)
    picture.putpalette([255, 0, 0, 0, 0, 90])
    picture.paste(0, (8, 0, 16, 16))
    picture.save(tmp_path / "a.png", transparency=0)
    assert load_dataset(str(tmp_path)).images([0])[0, 0, [0, 15]].tolist() == [[0, 0, 90], [255, 255, 255]]


def test_one_background_is_chosen_for_the_whole_folder_or_given(tmp_path):
    for number, light in enumerate([20, 30, 250]):
        half((light, light, light)).save(tmp_path / f"{number}.png")
    flat(tmp_path, "opaque.png", (250, 250, 250), size=(16, 16))
    images = load_dataset(str(tmp_path)).images(np.arange(4))
    assert images[:, 0, 15, 0].tolist() == [255, 255, 255, 250]
    given = load_dataset(str(tmp_path), background="#00ff00").images(np.arange(4))
    assert given[:, 0, 15].tolist() == 3 * [[0, 255, 0]] + [[250, 250, 250]]


def test_a_background_in_colour_makes_grey_pictures_coloured(tmp_path):
    half((30, 30, 30), "LA").save(tmp_path / "a.png")
    assert load_dataset(str(tmp_path)).image_shape == (16, 16, 1)
    assert load_dataset(str(tmp_path), background="red").images([0])[0, 0, [0, 15]].tolist() == [[30] * 3, [255, 0, 0]]


@pytest.mark.parametrize(("orientation", "corner"), [(1, (0, 0)), (3, (1, 1)), (6, (0, 1)), (8, (1, 0)), (2, (0, 1))])
def test_photos_stand_as_the_camera_was_held(tmp_path, orientation, corner):
    """The bright corner, top left as stored, goes where EXIF says."""
    picture = Image.new("L", (32, 32))
    picture.paste(255, (0, 0, 16, 16))
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture.save(tmp_path / "a.jpg", exif=exif, quality=95)
    quarters = load_dataset(str(tmp_path)).images([0])[0, ..., 0].reshape(2, 16, 2, 16).mean(axis=(1, 3))
    assert np.unravel_index(quarters.argmax(), (2, 2)) == corner


def test_a_rotated_photo_is_padded_as_it_is_seen(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = Image.new("RGB", (64, 32), (200, 0, 0))
    picture.paste((0, 0, 200), (0, 0, 64, 2))
    picture.save(tmp_path / "a.jpg", exif=exif, quality=95)  # 32 wide and 64 high as people see it
    assert load_dataset(str(tmp_path)).image_shape == (64, 32, 3)
    (image,) = load_dataset(str(tmp_path), 64, background="white").images([0])
    assert np.all(image[:, :16] == 255)
    assert np.all(image[:, 48:] == 255)
    assert image[:, 17:46, 0].min() > 150


def test_damaged_exif_does_not_spoil_a_picture(tmp_path):
    Image.new("L", (16, 16), 90).save(tmp_path / "a.jpg", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")
    assert np.all(load_dataset(str(tmp_path)).images([0]) == 90)


def test_sixteen_bits_are_stretched_over_the_range_of_their_file(tmp_path):
    ramp = np.linspace(500, 4595, 256).astype(np.uint16).reshape(16, 16)
    Image.fromarray(ramp).save(tmp_path / "a.png")
    Image.fromarray(ramp // 8).save(tmp_path / "b.tif")
    assert load_dataset(str(tmp_path)).image_shape == (16, 16, 1)
    for image in load_dataset(str(tmp_path)).images([0, 1])[..., 0]:
        assert (image.min(), image.max()) == (0, 255)
        assert np.all(np.diff(image.ravel().astype(int)) >= 0)
        assert len(np.unique(image)) == 256


@pytest.mark.parametrize("name", ["a.bmp", "a.tif", "a.TIFF", "a.gif", "a.npy", "a.png"])
@pytest.mark.parametrize("shape", [(16, 16), (16, 16, 3)])
def test_common_formats_are_read(tmp_path, name, shape):
    image = np.random.default_rng(0).integers(0, 256, shape, np.uint8) // 64 * 64  # few colours, for a palette
    if name.endswith("npy"):
        np.save(tmp_path / name, image)
    else:
        Image.fromarray(image).save(tmp_path / name)
    read = load_dataset(str(tmp_path)).images([0])[0]
    assert read.shape[2] == (1 if image.ndim == 2 and name != "a.gif" else 3)  # a palette counts as colour
    assert np.all(read == image.reshape(16, 16, -1))


def test_of_a_gif_the_first_frame_counts(tmp_path):
    frames = [Image.new("L", (16, 16), level) for level in (40, 200)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert np.all(load_dataset(str(tmp_path)).images([0]) == 40)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.full((3, 16, 16), 0.2, np.float32), [51, 51, 51]),
        (np.full((16, 16, 4), 255, np.uint8), [255, 255, 255]),
        (np.ones((16, 16), bool), [255]),
    ],
)
def test_npy_files_are_pictures_where_there_are_no_others(tmp_path, array, expected):
    np.save(tmp_path / "a.npy", array)
    assert load_dataset(str(tmp_path)).images([0])[0, 3, 3].tolist() == expected
    flat(tmp_path, "b.png", 7, mode="L")
    assert load_dataset(str(tmp_path)).images([0])[:, 3, 3].tolist() == [[7]]


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.zeros((16, 16, 2), np.uint8), r"has the shape \(16, 16, 2\); save it as"),
        (np.zeros(5, np.uint8), r"has the shape \(5,\); save it as"),
        (np.full((16, 16), 7.0), "uint8 from 0 to 255 or floats from 0 to 1"),
        (np.full((16, 16), None), "plain numbers"),
        (np.zeros((16, 16), np.complex64), "uint8 from 0 to 255"),
    ],
)
def test_npy_files_that_are_no_pictures_are_refused(tmp_path, array, sentence):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(UserError, match=rf"a\.npy.*{sentence}"):
        load_dataset(str(tmp_path))


def test_an_npy_picture_of_too_many_pixels_is_not_read(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.zeros((300, 300), np.uint8))
    monkeypatch.setattr(pictures, "MOST_PIXELS", 300 * 300 - 1)
    with pytest.raises(UserError, match=r"a\.npy has 300x300 pixels; make it smaller"):
        load_dataset(str(tmp_path))


def test_pictures_that_are_not_square_are_padded_cropped_or_stretched(tmp_path):
    picture = Image.new("RGB", (64, 32), (0, 0, 200))
    picture.paste((200, 0, 0), (16, 0, 48, 32))
    picture.save(tmp_path / "a.png")

    def middle(fit):
        dataset = load_dataset(str(tmp_path), 32, fit)
        assert "those that are not square are" in dataset.reading
        return dataset.images([0])[0, 16, :, 0]

    assert np.flatnonzero(middle("pad") > 100).tolist() == list(range(8, 24))
    assert np.flatnonzero(middle("crop") > 100).tolist() == list(range(32))
    assert np.flatnonzero(middle("stretch") > 100).tolist() == list(range(8, 24))
    padded = load_dataset(str(tmp_path), 32).images([0])[0]
    assert np.array_equal(padded[:8], padded[24:])
    assert load_dataset(str(tmp_path), 32, "stretch").images([0])[0, 2, 16, 0] > 100


def test_what_older_runs_saw_can_be_had_again(tmp_path):
    """The upper eight bits, no rotation, black behind what is transparent, stretched to 64x64, and no new formats."""
    exif = Image.Exif()
    exif[0x0112] = 3
    picture = Image.new("L", (20, 10))
    picture.paste(255, (0, 0, 20, 5))
    picture.save(tmp_path / "a.jpg", exif=exif)
    half((30, 30, 30), "LA").save(tmp_path / "b.png")
    Image.fromarray(np.array([[0x0100, 0x0800]], np.uint16)).save(tmp_path / "c.png")
    Image.new("L", (16, 16)).save(tmp_path / "d.gif")
    dataset = load_dataset(str(tmp_path), fit="legacy")
    assert dataset.image_shape == (64, 64, 1)
    photo, clear, deep = dataset.images(np.arange(len(dataset)))[..., 0]
    assert photo[:20].min() > 200 > 50 > photo[44:].max()
    assert (clear[:, 10].max(), clear[:, 60].max()) == (30, 0)
    assert deep.max() <= 10  # 8, and what the filter adds


def test_a_picture_of_the_right_size_is_taken_as_it_is(tmp_path):
    image = np.random.default_rng(0).integers(256, size=(32, 32, 3), dtype=np.uint8)
    Image.fromarray(image).save(tmp_path / "a.png")
    assert np.array_equal(load_dataset(str(tmp_path), resolution=32).images([0])[0], image)


def test_pictures_keep_a_size_that_networks_take(tmp_path):
    for number, (size, side) in enumerate([(128, 128), (40, 64), (20, 32)]):  # the median of 20, 40 and 128 is 40
        flat(tmp_path, f"{number}.png", 5, size=(size, size), mode="L")
        assert load_dataset(str(tmp_path)).image_shape == (side, side, 1)
    assert load_dataset(str(tmp_path), resolution=64).image_shape == (64, 64, 1)


def test_a_changed_folder_is_read_again(tmp_path):
    flat(tmp_path, "a.png", (1, 1, 1))
    assert len(load_dataset(str(tmp_path))) == 1
    flat(tmp_path, "b.png", (9, 9, 9))
    assert load_dataset(str(tmp_path)).images([0, 1])[:, 0, 0, 0].tolist() == [1, 9]


def test_factors_come_from_a_table_row_by_row(tmp_path):
    for number in range(4):
        flat(tmp_path, f"{number}.png", (number, 0, 0))
    (tmp_path / "factors.csv").write_text("shape,angle\nbox,10\nball,2.5\nbox,2.5\nball,10\n")
    space = load_dataset(str(tmp_path)).space
    assert space.names == ("shape", "angle")
    assert space.sizes == (2, 2)
    assert [factor.values for factor in space.factors] == [("ball", "box"), (2.5, 10.0)]
    assert space.factors_of(np.arange(4)).tolist() == [[1, 1], [0, 0], [1, 0], [0, 1]]
    assert space.indices_of([[0, 1], [1, 0]]).tolist() == [3, 2]


def test_a_column_of_file_names_overrules_the_order(tmp_path):
    for name in ("a.png", "b.png", "sub/c.png"):
        flat(tmp_path, name, (1, 2, 3))
    (tmp_path / "factors.csv").write_text("file,x\nsub/c.png,3\na.png,1\nb.png,2\n", encoding="utf-8-sig")
    dataset = load_dataset(str(tmp_path))
    assert dataset.space.names == ("x",)
    assert dataset.space.factors_of([0, 1, 2])[:, 0].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("x\n1\n", "has 1 rows but the folder has 2 images"),
        ("x,x\n1,2\n3,4\n", "distinct column names"),
        ("", "distinct column names"),
        ("x,y\n1,2\n3\n", "row 3: expected 2 values"),
        ("x,y\n1,\n3,\n", "the factor y has no known value"),
        ("file,x\na.png,1\nzzz.png,2\n", "a row for a file that is not in the folder: zzz.png"),
    ],
)
def test_a_wrong_table_is_a_sentence(tmp_path, table, sentence):
    flat(tmp_path, "a.png", (0, 0, 0))
    flat(tmp_path, "b.png", (0, 0, 0))
    (tmp_path / "factors.csv").write_text(table)
    with pytest.raises(UserError, match=sentence):
        load_dataset(str(tmp_path))


def test_a_broken_picture_is_named_and_nothing_is_cached(tmp_path):
    flat(tmp_path, "a.png", (0, 0, 0), size=(500, 500))
    whole = (tmp_path / "a.png").read_bytes()
    (tmp_path / "b.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"b\.png: expected a picture, found a broken one"):
        load_dataset(str(tmp_path))
    (tmp_path / "b.png").write_bytes(b"no picture at all")
    with pytest.raises(UserError, match=r"b\.png: expected a picture, found a broken one"):
        load_dataset(str(tmp_path))
    (tmp_path / "b.png").write_bytes(whole)
    assert len(load_dataset(str(tmp_path))) == 2


def test_a_picture_too_large_to_be_one_is_refused(tmp_path, monkeypatch):
    flat(tmp_path, "a.png", (0, 0, 0), size=(300, 300))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(UserError, match=r"a\.png: expected a picture, found a broken one"):
        load_dataset(str(tmp_path))


IMAGES = np.random.default_rng(0).integers(256, size=(6, 64, 64, 3), dtype=np.uint8)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed], ids=["stored", "compressed"])
@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        (IMAGES, IMAGES),
        (IMAGES.transpose(0, 3, 1, 2), IMAGES),
        (IMAGES[..., 0], IMAGES[..., :1]),
        (IMAGES.astype(np.float32) / 255, IMAGES),
        (IMAGES[..., :1] > 127, 255 * (IMAGES[..., :1] > 127)),
    ],
    ids=["channels last", "channels first", "grey", "floats", "truth values"],
)
def test_arrays_in_any_common_form(tmp_path, save, saved, expected):
    save(tmp_path / "mine.npz", images=saved)
    dataset = load_dataset(str(tmp_path / "mine.npz"))
    assert dataset.name == "mine"
    assert dataset.image_shape == expected.shape[1:]
    assert np.array_equal(dataset.images(np.arange(6)), expected)


def test_an_npy_file_of_images_is_a_dataset(tmp_path):
    np.save(tmp_path / "mine.npy", IMAGES.transpose(0, 3, 1, 2))
    dataset = load_dataset(str(tmp_path / "mine.npy"))
    assert (dataset.name, dataset.space.names) == ("mine", ())
    assert np.array_equal(dataset.images(np.arange(6)), IMAGES)
    np.save(tmp_path / "flat.npy", IMAGES[0, 0, 0])
    with pytest.raises(UserError, match=r"flat\.npy.*has the shape \(3,\); save it as"):
        load_dataset(str(tmp_path / "flat.npy"))


def test_arrays_with_transparency_and_of_sixteen_bits(tmp_path):
    clear = np.stack([np.asarray(half((30, 30, 30)))] * 3)
    np.savez(tmp_path / "clear.npz", images=clear)
    assert load_dataset(str(tmp_path / "clear.npz")).images([2])[0, 0, [0, 15]].tolist() == [[30] * 3, [255] * 3]
    np.savez(tmp_path / "deep.npz", images=np.arange(512, dtype=np.uint16).reshape(2, 16, 16))
    assert np.array_equal(load_dataset(str(tmp_path / "deep.npz")).images([1]).ravel(), np.arange(256))


def test_arrays_are_scaled_too(tmp_path):
    np.savez(tmp_path / "mine.npz", images=np.full((2, 40, 50, 1), 77, np.uint8))
    assert np.all(load_dataset(str(tmp_path / "mine.npz")).images([0, 1]) == 77)
    assert load_dataset(str(tmp_path / "mine.npz"), resolution=32).image_shape == (32, 32, 1)


def test_factors_in_an_archive(tmp_path):
    factors = np.array([[0, 5], [1, 5], [0, 7], [1, 7], [2, 5], [2, 5]])
    np.savez(tmp_path / "mine.npz", images=IMAGES, factors=factors, factor_names=["shape", "angle"])
    space = load_dataset(str(tmp_path / "mine.npz")).space
    assert space.names == ("shape", "angle")
    assert space.sizes == (3, 2)
    assert space.factors_of([3]).tolist() == [[1, 1]]
    np.savez(tmp_path / "nameless.npz", images=IMAGES, factors=factors)
    assert load_dataset(str(tmp_path / "nameless.npz")).space.names == ("factor 0", "factor 1")


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"pictures": IMAGES}, "'images'"),
        ({"images": IMAGES[0, 0]}, r"save it as \(images, height, width, 1, 3 or 4 channels\)"),
        ({"images": IMAGES.astype(float)}, "uint8 from 0 to 255 or floats from 0 to 1"),
        ({"images": IMAGES.astype(object)}, "plain numbers"),
        ({"images": IMAGES, "factors": np.zeros((5, 2), int)}, r"save it as \(6 images, factors\)"),
        ({"images": IMAGES, "factors": np.full((6, 2), None)}, "plain numbers, found Python objects; save it"),
        ({"images": IMAGES, "factors": np.zeros((6, 2), int), "factor_names": ["a"]}, "2 distinct names"),
        ({"images": IMAGES, "factors": np.full((6, 2), np.nan)}, "the factor factor 0 has no known value"),
        ({"images": IMAGES, "factors": np.full((6, 2), np.inf)}, "infinite values"),
    ],
)
def test_a_wrong_archive_is_a_sentence(tmp_path, arrays, sentence):
    np.savez(tmp_path / "mine.npz", allow_pickle=True, **arrays)
    with pytest.raises(UserError, match=sentence):
        load_dataset(str(tmp_path / "mine.npz"))


def test_what_is_not_there_or_not_images_is_a_sentence(tmp_path):
    with pytest.raises(UserError, match="does not exist; give a folder of images"):
        load_dataset(str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="no images in"):
        load_dataset(str(tmp_path))
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(UserError, match=r"neither a folder of images nor an \.npz or \.npy file"):
        load_dataset(str(tmp_path / "a.txt"))
    with pytest.raises(UserError, match="images have sides of 8 to 512 pixels, not 1000x1000"):
        load_dataset(str(tmp_path), resolution=1000)


def test_every_pixel_and_every_factor_value_counts_in_the_content(tmp_path):
    for number in range(40):
        flat(tmp_path, f"{number:02}.png", number, mode="L")
    (tmp_path / "factors.csv").write_text(
        "\n".join(["size", *("small" if number % 2 else "large" for number in range(40))])
    )

    def content():
        return identity(load_dataset(str(tmp_path)))

    before = content()
    assert content() == before
    seen = stream(0, "identity").integers(40, size=16)
    unseen = min(set(range(40)) - set(seen.tolist()))
    flat(tmp_path, f"{unseen:02}.png", 200, mode="L")
    after = content()
    assert after["checksum"] == before["checksum"]  # which looks at sixteen images only
    assert after["content"] != before["content"]
    (tmp_path / "factors.csv").write_text((tmp_path / "factors.csv").read_text().replace("large", "largest"))
    assert content()["content"] != after["content"]


def test_a_label_that_is_taken_away_counts_in_the_content(tmp_path):
    for number in range(4):
        flat(tmp_path, f"{number}.png", number, mode="L")
    contents = set()
    for rows in ("0,a,1\n1,b,2\n2,a,1\n3,b,2\n", "0,a,1\n1,b,2\n2,,1\n3,b,2\n", "0,a,1\n1,b,2\n3,b,2\n"):
        (tmp_path / "factors.csv").write_text("file,shape,x\n" + rows)
        contents.add(load_dataset(str(tmp_path)).content())
    assert len(contents) == 3


def test_some_images_of_a_folder_are_labelled(tmp_path):
    for number in range(5):
        flat(tmp_path, f"{number}.png", number, mode="L")
    (tmp_path / "factors.csv").write_text("file,shape,x\n3,ball,\n1,box,2\n0,,2.5\n")
    dataset = load_dataset(str(tmp_path))
    assert len(dataset) == 5
    assert [factor.values for factor in dataset.space.factors] == [("ball", "box"), (2.0, 2.5)]
    assert dataset.space.factors_of(np.arange(5)).tolist() == [[-1, 1], [1, 0], [-1, -1], [0, -1], [-1, -1]]
    assert "shape 2 (2 of 5 known), x 2 (2 of 5 known)" in repr(dataset)
    drawn = dataset.draw(stream(0, "batch"), 200)[:, 0, 0, 0]
    assert set(drawn.tolist()) == {0, 1, 2, 3, 4}  # training sees them all


def test_unknown_factors_in_an_archive(tmp_path):
    factors = np.array([[0, 5], [1, np.nan], [-1, 7], [1, 7], [2, 5], [np.nan, 5]])
    np.savez(tmp_path / "mine.npz", images=IMAGES, factors=factors)
    space = load_dataset(str(tmp_path / "mine.npz")).space
    assert space.rows.tolist() == [[0, 0], [1, -1], [-1, 1], [1, 1], [2, 0], [-1, 0]]


def test_a_link_to_nowhere_is_named(tmp_path):
    flat(tmp_path, "a.png", (0, 0, 0))
    (tmp_path / "b.png").symlink_to("nowhere")
    with pytest.raises(UserError, match=r"b\.png: .*no plain file"):
        load_dataset(str(tmp_path))
    (tmp_path / "b.png").unlink()
    (tmp_path / "factors.csv").symlink_to("nowhere")
    with pytest.raises(UserError, match=r"factors\.csv: expected a table of factors, found .*no plain file"):
        load_dataset(str(tmp_path))


def test_a_picture_that_another_program_would_draw_is_none(tmp_path):
    Image.new("RGB", (20, 20)).save(tmp_path / "a.eps")
    (tmp_path / "a.eps").rename(tmp_path / "a.png")
    with pytest.raises(UserError, match=r"a\.png: expected a picture, found a broken one"):
        load_dataset(str(tmp_path))


def test_a_picture_of_too_many_pixels_is_not_decoded(tmp_path, monkeypatch):
    flat(tmp_path, "a.png", (0, 0, 0), size=(300, 300))
    monkeypatch.setattr(pictures, "MOST_PIXELS", 300 * 300 - 1)
    with pytest.raises(UserError, match=r"a\.png has 300x300 pixels; make it smaller"):
        load_dataset(str(tmp_path))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"images": np.uint8(3)}, r"has the shape \(\); save it as"),
        ({"images": IMAGES[:, :0]}, r"has the shape \(6, 0, 64, 3\); save it as"),
        ({"images": IMAGES, "factors": np.zeros((6, 2)), "factor_names": [["a", "b"]]}, "2 distinct names"),
        ({"images": IMAGES, "factors": np.zeros((6, 2)), "factor_names": [1, 2]}, "2 distinct names"),
    ],
)
def test_odd_arrays_are_refused_in_a_sentence(tmp_path, content, sentence):
    np.savez(tmp_path / "mine.npz", **content)
    with pytest.raises(UserError, match=rf"mine\.npz.*{sentence}"):
        load_dataset(str(tmp_path / "mine.npz"))


def test_factors_in_bytes_are_words(tmp_path):
    np.savez(tmp_path / "mine.npz", images=IMAGES, factors=np.array([b"a", b"b", b"a", b"b", b"a", b"a"]))
    assert load_dataset(str(tmp_path / "mine.npz")).space.factors[0].values == ("a", "b")


def test_an_npy_called_npz_is_refused(tmp_path):
    np.save(tmp_path / "mine.npy", IMAGES)
    (tmp_path / "mine.npy").rename(tmp_path / "mine.npz")
    with pytest.raises(UserError, match=r"mine\.npz: expected a whole \.npz archive, found a broken one"):
        load_dataset(str(tmp_path / "mine.npz"))
