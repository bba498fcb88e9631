import asyncio
import base64
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import PlainTextResponse

from lddr.explorer.guard import FREE_TRIES, LOOPBACK, Guard, Password, host_name
from tests.explorer.conftest import serving


def answer(address, method="get", path="/api/runs", **headers):
    return requests.request(method, f"{address}{path}", headers=headers, timeout=60)


def basic(password, user="any", scheme="Basic"):
    return f"{scheme} {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


@pytest.fixture
def empty(tmp_path):
    with serving(tmp_path) as address:
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
@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("192.168.1.4:8421", True),
        ("[fe80::1]", True),
        ("machine", True),
        ("machine.local:8421", True),
        ("evil.example", False),
        ("192.168.1.4.evil.example", False),
    ],
)
def test_open_to_others_it_answers_to_foreign_names_only_with_a_password(tmp_path, host, is_ours, password):
    with serving(tmp_path, password=password, is_public=True) as address:
        status = answer(address, Host=host, Authorization=basic("open")).status_code
    assert status == (200 if is_ours or password else 400)


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


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/api/runs"])
def test_a_password_is_asked_for_everything(tmp_path, path):
    with serving(tmp_path, password="žluťoučký: 1", is_public=True) as address:
        assert answer(address, path=path).status_code == 401
        assert "Basic" in answer(address, path=path).headers["www-authenticate"]
        for wrong in (basic(""), basic("žluťoučký"), basic("žluťoučký: 1", scheme="Bearer"), "Basic", "Basic ??", "x"):
            assert answer(address, path=path, Authorization=wrong).status_code == 401
        assert answer(address, path=path, Authorization=basic("žluťoučký: 1")).status_code == 200


@pytest.mark.parametrize(
    ("host", "name"), [("a.b:80", "a.b"), ("A", "a"), ("[::1]:80", "::1"), ("[::1]", "::1"), ("[::1", None), ("", None)]
)
def test_the_name_in_a_host_header(host, name):
    assert host_name(host) == name


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
    with ThreadPoolExecutor(1) as another:  # a browser that other tests left open keeps an event loop in this thread
        another.submit(asyncio.run, guard(scope, None, send)).result()
    assert sent[0]["status"] in (200, 400, 401, 403, 429)
    assert b"content-security-policy" in dict(sent[0]["headers"])


def test_whoever_guesses_has_to_wait_even_with_the_right_password(tmp_path):
    with serving(tmp_path, password="open", is_public=True) as address:
        for _ in range(FREE_TRIES):
            assert answer(address).status_code == 401  # a browser asks without a password at first: that is no guess
        statuses = [answer(address, Authorization=basic(f"guess {number}")).status_code for number in range(FREE_TRIES)]
        assert statuses == [401] * (FREE_TRIES - 1) + [429]
        refused = answer(address, Authorization=basic("open"))
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert "wait" in refused.json()["message"]
