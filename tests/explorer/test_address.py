import socket

import pytest

from lddr.errors import UserError
from lddr.explorer.guard import is_loopback, listening, names_of, url

LOCAL = ("127.0.0.1", "127.8.8.8", "::1", "localhost")
REMOTE = ("0.0.0.0", "::", "192.168.1.4", "example.org", "localhost.example.org")


@pytest.mark.parametrize("host", LOCAL + REMOTE)
def test_which_addresses_only_this_machine_reaches(host):
    assert is_loopback(host) == (host in LOCAL)


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "http://127.0.0.1:5"), ("::1", "http://[::1]:5"), ("0.0.0.0", "http://127.0.0.1:5")],
)
def test_the_address_to_type(host, address):
    assert url(host, 5) == address


def test_a_port_that_is_taken_is_a_sentence():
    with listening("127.0.0.1", 0) as place:
        with pytest.raises(UserError, match="choose another with --port"):
            listening("127.0.0.1", place.getsockname()[1])
    with pytest.raises(UserError, match="0 to 65535"):
        listening("127.0.0.1", 70_000)


def test_a_machine_goes_by_its_own_names():
    assert names_of("::1") == {"127.0.0.1", "localhost", "::1"}
    assert names_of("127.8.8.8") == {"127.0.0.1", "localhost", "::1", "127.8.8.8"}
    assert {"lab.example.org", socket.getfqdn().lower()} <= names_of("Lab.example.org")
