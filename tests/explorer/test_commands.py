import signal
import subprocess
import sys

import pytest
import requests

from lddr.errors import UserError
from lddr.explorer import commands

CODE = """
import sys
from pathlib import Path
from lddr.explorer.commands import explore

explore(Path(sys.argv[1]), host="0.0.0.0", port=0, open_browser=False)
"""
LOCAL = ("127.0.0.1", "127.8.8.8", "::1", "localhost")
REMOTE = ("0.0.0.0", "::", "192.168.1.4", "example.org", "localhost.example.org")


@pytest.mark.parametrize("host", LOCAL + REMOTE)
def test_which_addresses_only_this_machine_reaches(host):
    assert commands.is_loopback(host) == (host in LOCAL)


def test_the_warning_names_the_remedy():
    assert "everybody" in commands.warning("0.0.0.0", False)
    assert "--password" in commands.warning("0.0.0.0", False)
    assert "whoever knows the password" in commands.warning("0.0.0.0", True)


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "http://127.0.0.1:5"), ("::1", "http://[::1]:5"), ("0.0.0.0", "http://127.0.0.1:5")],
)
def test_the_address_to_type(host, address):
    assert commands.url(host, 5) == address


def test_a_port_that_is_taken_is_a_sentence():
    with commands.listening("127.0.0.1", 0) as place:
        with pytest.raises(UserError, match="choose another with --port"):
            commands.listening("127.0.0.1", place.getsockname()[1])
    with pytest.raises(UserError, match="0 to 65535"):
        commands.listening("127.0.0.1", 70_000)


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(UserError, match="there is no folder"):
        commands.explore(tmp_path / "nothing")


def test_it_serves_until_it_is_interrupted(tmp_path, monkeypatch):
    monkeypatch.setenv(commands.PASSWORD, "open")
    command = [sys.executable, "-c", CODE, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().split()[4]
        assert requests.get(f"{address}/api/runs", timeout=60).status_code == 401
        assert requests.get(f"{address}/api/runs", timeout=60, auth=("me", "open")).status_code == 200
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait(60) == 0
    assert "whoever knows the password" in said
    assert "Traceback" not in said
