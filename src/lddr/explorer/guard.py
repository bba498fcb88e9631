"""The explorer's address, and which requests it answers: host names, origins and an optional password."""

from __future__ import annotations

import base64
import ipaddress
import math
import re
import secrets
import socket
import time
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lddr.errors import UserError

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
FREE_TRIES, WAIT = 10, 60.0  # wrong passwords, then seconds between two tries
HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^][:/@\\\s]+))(?::[0-9]{1,5})?")  # [IPv6] or a name, and optionally a port
HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def names_of(host: str) -> frozenset[str]:
    """Return the host names that requests to this address may use."""
    return LOOPBACK | {host.lower()} | (set() if is_loopback(host) else {socket.getfqdn().lower()})


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at this address; port 0 picks any free one."""
    if not 0 <= port <= 65535:
        raise UserError(f"a port is a number from 0 to 65535, not {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"cannot listen at {host} port {port} ({reason}); choose another with --port") from error


def url(host: str, port: int) -> str:
    """Return the URL to open in a browser on this machine."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # these mean every address
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"


class Password:
    """HTTP basic authentication with any user name; a client with many wrong passwords has to wait between two."""

    def __init__(self, secret: str, clock: Callable[[], float] = time.monotonic) -> None:
        if not secret:
            raise UserError("the password is empty; give one with --password or LDDR_PASSWORD, or leave both out")
        self._secret, self._clock = secret.encode(), clock
        self._wrong: dict[str, tuple[int, float]] = {}  # by client: number of wrong passwords, time of the last

    def is_known(self, authorization: str, client: str) -> bool:
        """Check the password; while the client has to wait, return False without checking."""
        if not authorization or self.wait(client):
            return False
        scheme, _, credentials = authorization.partition(" ")
        try:
            given = base64.b64decode(credentials, validate=True).partition(b":")[2]
        except ValueError:
            given = b""
        is_right = secrets.compare_digest(given, self._secret) and scheme.lower() == "basic"
        if is_right:
            self._wrong.pop(client, None)
        else:
            self._wrong[client] = (self._wrong.get(client, (0, 0.0))[0] + 1, self._clock())
        return is_right

    def wait(self, client: str) -> int:
        """Return the seconds until this client may try again."""
        tries, last = self._wrong.get(client, (0, 0.0))
        return max(0, math.ceil(last + WAIT - self._clock())) if tries >= FREE_TRIES else 0


class Guard:
    """Middleware in front of the application; `names` are this machine's, `is_public` says if others may reach it."""

    def __init__(self, app: ASGIApp, password: Password | None, names: frozenset[str], is_public: bool) -> None:
        self._app, self._password, self._names, self._is_public = app, password, names, is_public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refusal(Headers(scope=scope), (scope.get("client") or ("",))[0])
        await (refusal or self._app)(scope, receive, protected)

    def _refusal(self, headers: Headers, client: str) -> JSONResponse | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_ours(host):
            return _refused(400, "this server does not answer to that name; open it by its address")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return _refused(403, "this page belongs to another site")
        if self._password is None or self._password.is_known(given := headers.get("authorization", ""), client):
            return None
        if given and (seconds := self._password.wait(client)):
            return _refused(429, "too many wrong passwords; wait a little", {"retry-after": str(seconds)})
        return _refused(401, "the password is missing or wrong", {"www-authenticate": 'Basic realm="lddr explore"'})

    def _is_ours(self, host: str) -> bool:
        """Return False for names that another site could point here (DNS rebinding) to read the runs by a browser."""
        found = HOST.fullmatch(host.lower())
        name = found and (found[1] or found[2])
        if not name or name in self._names or not self._is_public:
            return name in self._names
        is_address = ":" in name or name.replace(".", "").isdigit()
        return self._password is not None or is_address or "." not in name or name.endswith(".local")


def _refused(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"message": message}, status, headers)
