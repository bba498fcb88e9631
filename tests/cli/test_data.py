import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image

from lddr.cli import main
from lddr.data.dataset import datasets
from lddr.data.factors import Factor, FactorGrid
from lddr.data.official import Remote
from lddr.data.official.dsprites import PATH, DSprites, drawn_sprites
from lddr.data.official.shapes3d import Shapes3D
from lddr.files import alone


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("LDDR_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DISENTANGLEMENT_LIB_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "200")


def mistake(words: list[str], capsys) -> str:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    return capsys.readouterr().err


def test_the_list_names_every_dataset(capsys):
    main(["data", "list"])
    lines = capsys.readouterr().out.splitlines()
    for name in datasets:
        assert any(line.split()[:1] == [name] for line in lines)
    assert any(line.startswith("rooms") and "480,000" in line and "floor hue 10" in line for line in lines)


@pytest.mark.parametrize("name", ["circles", "rooms"])
def test_show_writes_a_picture(name, tmp_path, capsys):
    main(["data", "show", name, "-o", str(tmp_path / "new" / "sheet.png"), "--resolution", "32"])
    with Image.open(tmp_path / "new" / "sheet.png") as picture:
        assert picture.width > 640
    assert "sheet.png" in capsys.readouterr().out


def test_show_takes_your_own_images(tmp_path, capsys):
    np.savez(tmp_path / "mine.npz", images=np.zeros((3, 32, 32), np.uint8))
    main(["data", "show", str(tmp_path / "mine.npz"), "-o", str(tmp_path / "mine.png")])
    assert "<mine: 3 images 32x32x1, no factors>" in capsys.readouterr().out


def test_show_says_and_draws_how_pictures_are_prepared(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    Image.new("RGBA", (40, 20), (0, 0, 200, 255)).save(tmp_path / "mine" / "a.png")

    def corner(*options):
        main(["data", "show", str(tmp_path / "mine"), "-o", str(tmp_path / "mine.png"), *options])
        with Image.open(tmp_path / "mine.png") as sheet:
            return sheet.getpixel((sheet.width - 10, sheet.height - 10)), capsys.readouterr().out

    pixel, said = corner("--resolution", "16", "--background", "#ff8800")
    assert pixel == (255, 136, 0)
    assert "1 picture of 40x20 pixels is read at 16x16 in colour; those that are not square are padded" in said
    pixel, said = corner("--fit", "crop", "--resolution", "32x32")
    assert pixel == (0, 0, 200)
    assert "is read at 32x32 in colour; those that are not square are cropped" in said
    error = mistake(["data", "show", "circles", "--fit", "crop"], capsys)
    assert "circles has images of its own; fit and background are for your own pictures" in error


def test_show_takes_a_height_and_a_width(tmp_path, capsys):
    np.save(tmp_path / "wide.npy", np.zeros((3, 48, 96), np.uint8))
    words = ["data", "show", str(tmp_path / "wide.npy"), "-o", str(tmp_path / "a.png")]
    main(words)
    assert "of 96x48 pixels are read at 96x48 (resolution 48x96) in grey\n" in capsys.readouterr().out
    main([*words, "--resolution", "16x32"])
    assert "3 images 16x32x1" in capsys.readouterr().out
    assert "resolution must be a number of pixels, or HEIGHTxWIDTH" in mistake([*words, "--resolution", "wide"], capsys)
    assert "images have sides of 8 to 512 pixels, not 4x4" in mistake([*words, "--resolution", "4"], capsys)


def test_show_refuses_what_is_no_picture_before_it_draws(tmp_path, capsys):
    assert "end its name in .png" in mistake(["data", "show", "circles", "-o", str(tmp_path / "sheet.doc")], capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["download", "verify"])
def test_official_names_are_asked_for(command, capsys):
    assert "name at least one dataset: cars3d" in mistake(["data", command], capsys)
    assert "circles is drawn here and needs no files" in mistake(["data", command, "circles"], capsys)
    assert "did you mean 'shapes3d'" in mistake(["data", command, "shape3d"], capsys)


def test_verify_says_what_is_missing(capsys):
    error = mistake(["data", "verify", "shapes3d"], capsys)
    assert "lddr data download shapes3d" in error


def test_files_that_need_a_browser_are_said_with_their_address(capsys):
    error = mistake(["data", "download", "falcor3d"], capsys)
    assert "with a browser from https://drive.google.com" in error
    assert "Falcor3D_down128/images/000000.png exists" in error
    assert "lddr data download falcor3d" in mistake(["data", "verify", "falcor3d"], capsys)


@pytest.fixture
def server(tmp_path):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    (tmp_path / "served").mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "served"))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield tmp_path / "served", f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_download_then_verify(server, tmp_path, monkeypatch, capsys):
    served, address = server
    content = b"no HDF5 at all" * 1000
    (served / "3dshapes.h5").write_bytes(content)
    checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
    remote = Remote("3dshapes/3dshapes.h5", "https://elsewhere.invalid/3dshapes.h5", checksum, len(content))
    monkeypatch.setattr(Shapes3D, "remotes", (remote,))

    main(["data", "download", "shapes3d", "--mirror", address])
    assert "1 file, 14.0 kB, into" in capsys.readouterr().out
    assert (tmp_path / "data" / "3dshapes" / "3dshapes.h5").read_bytes() == content
    main(["data", "download", "shapes3d", "--mirror", address])
    assert "everything is there already" in capsys.readouterr().out

    with pytest.raises(SystemExit):
        main(["data", "verify", "shapes3d"])
    out = capsys.readouterr().out
    assert "ok, checksum" in out
    assert "expected" in out  # the checksum is right but the content is no HDF5 file


@pytest.fixture
def little_dsprites(tmp_path, monkeypatch):
    """The first 2048 of dSprites as its official file, after some pixels were changed."""
    x, y = DSprites.space.factors[3:]
    space = FactorGrid((Factor("shape", 1), Factor("scale", 1), Factor("orientation", 2), x, y))
    for kind in (DSprites, datasets["color_dsprites"]):
        monkeypatch.setattr(kind, "space", space)

    def write(*changed):
        images = np.unpackbits(drawn_sprites().take(np.arange(2048)), axis=1).reshape(2048, 64, 64)
        for pixel in changed:
            images[pixel] ^= 1
        path = tmp_path / "data" / f"{PATH}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, imgs=images)

    return write


def test_verify_compares_dsprites_with_its_drawing(little_dsprites, capsys):
    little_dsprites()
    main(["data", "verify", "dsprites"])
    out = capsys.readouterr().out
    assert "ok, 0 pixels differ from the drawing, in 0 of 2048 images" in out
    assert "no checksum is known for it: that its length is right is all that could be checked" in " ".join(out.split())


def test_verify_counts_the_pixels_and_images_that_differ(little_dsprites, capsys):
    little_dsprites((5, 30, 30), (5, 31, 31), (2047, 0, 63))
    main(["data", "verify", "color_dsprites"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "ok, 3 pixels differ from the drawing, in 2 of 2048 images (the first: 5, 2047)" in shown


def test_verify_refuses_what_is_not_dsprites(little_dsprites, capsys):
    little_dsprites(slice(10, 20))
    error = mistake(["data", "verify", "dsprites"], capsys)
    assert "lddr data download dsprites" in error


def test_verify_needs_a_file_to_compare(capsys):
    with pytest.raises(SystemExit):
        main(["data", "verify", "dsprites"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "dSprites not found under" in shown
    assert "get it with: lddr data download dsprites (28 MB)" in shown


def test_the_list_says_whether_dsprites_is_drawn(little_dsprites, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "400")

    def here():
        main(["data", "list"])
        return {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}["dsprites"]

    assert here().endswith("redrawn")
    little_dsprites()
    assert here().endswith(f"official file in {tmp_path}/data/dsprites")


def test_clean_asks_before_it_removes(tmp_path, monkeypatch, capsys):
    main(["data", "clean"])
    assert capsys.readouterr().out == "there is nothing to remove\n"
    np.savez(tmp_path / "mine.npz", images=np.zeros((3, 32, 32), np.uint8))
    main(["data", "show", str(tmp_path / "mine.npz"), "-o", str(tmp_path / "mine.png")])
    (made,) = (tmp_path / "cache" / "lddr" / "arrays").glob("*.npy")
    left = made.with_name(f".{made.stem}-0a1b2c3d.npy")  # by a process that was killed
    left.write_bytes(bytes(2000))
    capsys.readouterr()
    for answer in ("", "no", EOFError()):
        monkeypatch.setattr("builtins.input", Mock(side_effect=[answer]))
        main(["data", "clean"])
        assert "nothing was removed" in capsys.readouterr().err
    assert made.exists()
    monkeypatch.setattr("builtins.input", Mock(side_effect=["y"]))
    main(["data", "clean"])
    out = capsys.readouterr().out
    assert f"3.2 kB  {made}\n" in out
    assert f"2.0 kB  {left}\n" in out
    assert not made.exists()
    assert not left.exists()


def test_clean_leaves_what_is_being_made(tmp_path, capsys):
    folder = tmp_path / "cache" / "lddr" / "arrays"
    folder.mkdir(parents=True)
    draft, ready = folder / ".cars3d-1234-0a1b2c3d.npy", folder / "cars3d-5678.npy"
    draft.touch()
    ready.touch()
    with alone(folder / "cars3d-1234.npy"):
        main(["data", "clean", "--yes"])
    assert draft.exists()
    assert not ready.exists()
