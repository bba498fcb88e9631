import asyncio
import base64
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import PlainTextResponse

from lddr.errors import UserError
from lddr.explorer.guard import (
    FREE_TRIES,
    LOOPBACK,
    WAIT,
    Guard,
    Password,
    is_loopback,
    listening,
    names_of,
    url,
)
from tests.explorer.conftest import serving

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


def answer(address, method="get", path="/api/runs", **headers):
    return requests.request(method, f"{address}{path}", headers=headers, timeout=60)


def basic(password, user="any", scheme="Basic"):
    return f"{scheme} {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("empty")) as address:
        yield address


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/api/runs", "/nothing"])
def test_every_answer_forbids_what_the_page_does_not_need(empty, path):
    headers = answer(empty, path=path).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'self'"
    assert policy["img-src"] == "'self' data: blob:"
    assert policy["frame-ancestors"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:99", "[::1]:8421"])
def test_names_of_this_machine_are_answered(empty, host):
    assert answer(empty, Host=host).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "[::1].evil.example",
        "[::1]evil.example",
        "[::1",
        "[::1]:80:80",
        "localhost@evil.example",
        "",
    ],
)
def test_a_foreign_name_for_this_machine_is_refused(empty, host):
    refused = answer(empty, Host=host)
    assert refused.status_code == 400
    assert refused.json()["message"]


@pytest.mark.parametrize("password", [None, "open"])
def test_open_to_others_it_answers_to_foreign_names_only_with_a_password(tmp_path, password):
    ours = ("192.168.1.4:8421", "[fe80::1]", "machine", "machine.local:8421")
    with serving(tmp_path, password=password, is_public=True) as address:
        for host in (*ours, "evil.example", "192.168.1.4.evil.example"):
            status = answer(address, Host=host, Authorization=basic("open")).status_code
            assert status == (200 if host in ours or password else 400)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://[", "//", ""])
def test_another_site_cannot_ask(empty, origin):
    refused = answer(empty, "post", "/api/runs/0/decode", Origin=origin)
    assert refused.status_code == 403
    assert "content-security-policy" in refused.headers


def test_a_preflight_of_another_site_is_refused(empty):
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    assert answer(empty, "options", "/api/runs/0/decode", **headers).status_code == 403


def test_the_page_itself_may_ask(empty):
    assert answer(empty, "post", "/api/runs/0/decode", Origin=empty).status_code == 415


def test_a_password_is_asked_for_everything(tmp_path):
    wrong = (basic(""), basic("žluťoučký"), basic("žluťoučký: 1", scheme="Bearer"), "Basic", "Basic ??", "x")
    with serving(tmp_path, password="žluťoučký: 1", is_public=True) as address:
        for path in ("/", "/static/app.js", "/api/runs"):
            assert answer(address, path=path).status_code == 401
            assert "Basic" in answer(address, path=path).headers["www-authenticate"]
            for given_password in wrong:
                assert answer(address, path=path, Authorization=given_password).status_code == 401
            assert answer(address, path=path, Authorization=basic("žluťoučký: 1")).status_code == 200


HEADERS = st.dictionaries(
    st.sampled_from([b"host", b"origin", b"authorization", b"content-type", b"content-length"]),
    st.one_of(
        st.binary(max_size=30),
        st.sampled_from([b"localhost", b"[::1]", b"http://[", b"Basic \xff", b"Basic Og==", b"basic", b"-1"]),
    ),
)


@given(headers=HEADERS, password=st.sampled_from([None, "open"]), is_public=st.booleans())
def test_no_header_brings_it_out_of_step(headers, password, is_public):
    sent = []

    async def send(message):
        sent.append(message)

    async def application(scope, receive, send):
        await PlainTextResponse("in")(scope, receive, send)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": list(headers.items()), "client": ("::1", 5)}
    guard = Guard(application, password and Password(password), LOOPBACK, is_public)
    with ThreadPoolExecutor(1) as another:  # the browser of other tests keeps an event loop in this thread
        another.submit(asyncio.run, guard(scope, None, send)).result()
    assert sent[0]["status"] in (200, 400, 401, 403, 429)
    assert b"content-security-policy" in dict(sent[0]["headers"])


def test_who_guesses_has_to_wait_even_with_the_right_password(tmp_path):
    with serving(tmp_path, password="open", is_public=True) as address:
        for _ in range(FREE_TRIES):
            assert answer(address).status_code == 401  # a browser asks without a password at first: that is no guess
        statuses = [answer(address, Authorization=basic(f"guess {number}")).status_code for number in range(FREE_TRIES)]
        assert statuses == [401] * (FREE_TRIES - 1) + [429]
        refused = answer(address, Authorization=basic("open"))
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert "wait" in refused.json()["message"]


class Clock:
    """A time that tests set."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def password(clock):
    return Password("open", clock)


def guess(password, times, client="10.0.0.1"):
    for number in range(times):
        assert not password.is_known(basic(f"guess {number}"), client)


def test_after_many_wrong_passwords_each_further_one_costs_a_minute(password, clock):
    guess(password, FREE_TRIES - 1)
    assert password.wait("10.0.0.1") == 0
    guess(password, 1)
    assert password.wait("10.0.0.1") == WAIT
    assert not password.is_known(basic("open"), "10.0.0.1")  # not looked at
    assert password.is_known(basic("open"), "10.0.0.2")  # others do not wait
    clock.now += WAIT - 0.5
    guess(password, 50)  # not looked at, so they do not count
    assert password.wait("10.0.0.1") == 1
    clock.now += 0.5
    guess(password, 1)
    assert password.wait("10.0.0.1") == WAIT
    clock.now += WAIT
    assert password.is_known(basic("open"), "10.0.0.1")
    guess(password, FREE_TRIES - 1)  # the right one forgives the wrong ones
    assert password.wait("10.0.0.1") == 0


@pytest.mark.parametrize("authorization", ["", "Basic", "Basic ??", "Bearer b3Blbg==", "Basic b3Blbg==", "\xff"])
def test_other_headers_are_no_password(password, authorization):
    assert not password.is_known(authorization, "10.0.0.1")


def test_an_empty_password_is_a_mistake():
    with pytest.raises(UserError, match="the password is empty"):
        Password("")
