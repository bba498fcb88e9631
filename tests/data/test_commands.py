import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from PIL import Image

from lddr.cli import main
from lddr.data.dataset import datasets
from lddr.data.download import Remote
from lddr.data.official.shapes3d import Shapes3D


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
    assert "<mine: 3 images 64x64x1, no factors>" in capsys.readouterr().out


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
    assert "1 file, 14 kB, into" in capsys.readouterr().out
    assert (tmp_path / "data" / "3dshapes" / "3dshapes.h5").read_bytes() == content
    main(["data", "download", "shapes3d", "--mirror", address])
    assert "everything is there already" in capsys.readouterr().out

    with pytest.raises(SystemExit):
        main(["data", "verify", "shapes3d"])
    out = capsys.readouterr().out
    assert "ok, checksum" in out
    assert "expected" in out  # the checksum is right but the content is no HDF5 file
