import base64

import pytest
import requests

from lddr.explorer.guard import host_name
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
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", ""]
)
def test_a_foreign_name_for_this_machine_is_refused(empty, host):
    refused = answer(empty, Host=host)
    assert refused.status_code == 400
    assert refused.json()["message"]


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_another_site_cannot_ask(empty, origin):
    assert answer(empty, "post", "/api/runs/0/decode", Origin=origin).status_code == 403


def test_a_preflight_of_another_site_is_refused(empty):
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    assert answer(empty, "options", "/api/runs/0/decode", **headers).status_code == 403


def test_the_page_itself_may_ask(empty):
    assert answer(empty, "post", "/api/runs/0/decode", Origin=empty).status_code == 415


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/api/runs"])
def test_a_password_is_asked_for_everything(tmp_path, path):
    with serving(tmp_path, password="žluťoučký: 1", hosts=None) as address:
        assert answer(address, path=path).status_code == 401
        assert "Basic" in answer(address, path=path).headers["www-authenticate"]
        for wrong in (basic(""), basic("žluťoučký"), basic("žluťoučký: 1", scheme="Bearer"), "Basic", "Basic ??", "x"):
            assert answer(address, path=path, Authorization=wrong).status_code == 401
        assert answer(address, path=path, Authorization=basic("žluťoučký: 1")).status_code == 200


@pytest.mark.parametrize(
    ("host", "name"), [("a.b:80", "a.b"), ("A", "a"), ("[::1]:80", "::1"), ("[::1]", "::1"), ("[::1", "::1"), ("", "")]
)
def test_the_name_in_a_host_header(host, name):
    assert host_name(host) == name
