import signal
import subprocess
import sys

import pytest
import requests

from lddr.cli import explore as command
from lddr.cli import main


def test_the_warning_names_the_remedy():
    assert "everybody" in command.network_warning("0.0.0.0", False)
    assert "--password" in command.network_warning("0.0.0.0", False)
    assert "everybody who knows the password" in command.network_warning("0.0.0.0", True)


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["explore", str(tmp_path / "nothing")])
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--password", ""], []])
def test_an_empty_password_is_no_open_door(tmp_path, monkeypatch, capsys, words):
    monkeypatch.setenv(command.PASSWORD, "")
    with pytest.raises(SystemExit, match="2"):
        main(["explore", str(tmp_path), *words])
    assert "the password is empty" in capsys.readouterr().err


def test_it_serves_until_it_is_interrupted(tmp_path, monkeypatch):
    monkeypatch.setenv(command.PASSWORD, "open")
    words = ["explore", str(tmp_path), "--host", "0.0.0.0", "--port", "0", "--no-open-browser"]
    called = [sys.executable, "-m", "lddr", *words]
    with subprocess.Popen(called, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().split()[4]
        assert requests.get(f"{address}/api/runs", timeout=60).status_code == 401
        assert requests.get(f"{address}/api/runs", timeout=60, auth=("me", "open")).status_code == 200
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait(60) == 0
    assert "everybody who knows the password" in said
    assert "Traceback" not in said
