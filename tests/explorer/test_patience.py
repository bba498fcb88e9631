import socket
import time
from contextlib import ExitStack

import pytest
import requests

from lddr.explorer import guard as patience
from tests.explorer.conftest import serving

HEAD = b"POST /api/runs/0/decode HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
UNFINISHED = {
    "nothing": b"",
    "half a line": b"GET / HT",
    "half the headers": HEAD,
    "half the body": HEAD + b"Content-Length: 100\r\n\r\nhalf",
    "a chunk without an end": HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    "a body after the answer": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf",
    "a second request": b"GET /static/icon.svg HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTT",
}


def connected(address):
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=60)  # a recv that waits that long is an error


def rest(connection):
    """All that comes until the other side hangs up."""
    content = b""
    try:
        while part := connection.recv(65536):
            content += part
    except ConnectionResetError:
        pass
    return content


@pytest.fixture
def hasty(tmp_path, monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE", 0.2)
    with serving(tmp_path) as address:
        yield address


@pytest.mark.parametrize("begun", UNFINISHED.values(), ids=UNFINISHED.keys())
def test_a_request_that_never_ends_is_cut_off(hasty, begun, capfd):
    with connected(hasty) as connection:
        connection.sendall(begun)
        rest(connection)
    assert requests.get(hasty, timeout=60).ok
    assert "Traceback" not in capfd.readouterr().err


def is_cut_off(connection, drop):
    """Whether sending and never reading comes to an end."""
    connection.settimeout(0.01)
    for _ in range(3000):
        try:
            connection.send(drop)
        except TimeoutError:
            pass
        except ConnectionError:
            return True
        time.sleep(0.01)
    return False


def test_a_drop_now_and_then_does_not_help(hasty):
    with connected(hasty) as connection:
        connection.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n")
        assert is_cut_off(connection, b"x")


def test_whoever_never_reads_the_answer_is_cut_off(hasty):
    with connected(hasty) as connection:
        assert is_cut_off(connection, 100 * b"GET /static/style.css HTTP/1.1\r\nHost: localhost\r\n\r\n")


def test_one_connection_too_many_is_closed_and_the_others_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(patience, "MOST_CONNECTIONS", 3)
    with serving(tmp_path) as address, ExitStack() as stack:
        kept = [stack.enter_context(connected(address)) for _ in range(3)]
        kept[0].sendall(b"GET /static/icon.svg HTTP/1.1\r\nHost: localhost\r\n\r\n")  # all three are seen by now
        assert kept[0].recv(100).startswith(b"HTTP/1.1 200")
        with connected(address) as one_more:
            assert rest(one_more) == b""
        kept[1].sendall(b"GET /static/icon.svg HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert kept[1].recv(100).startswith(b"HTTP/1.1 200")
