"""Protection of the explorer: host names, passwords, limits and timeouts."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import math
import re
import secrets
import socket
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Network

import h11
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from lddr.errors import UserError

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def is_loopback(host: str) -> bool:
    """Return whether the address can be reached from this machine only."""
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


FREE_TRIES = 10  # wrong passwords that cause no delay
LONGEST_WAIT, FORGOTTEN = 60.0, 600.0  # seconds
MOST_CLIENTS = 10_000  # with wrong passwords, that are remembered


class Password:
    """HTTP basic authentication with any user name."""

    def __init__(self, secret: str, clock: Callable[[], float] = time.monotonic) -> None:
        if not secret:
            raise UserError("the password is empty; give one with --password or LDDR_PASSWORD, or leave both out")
        self._secret, self._clock = secret.encode(), clock
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()  # by client: number of tries, time of the last

    def is_known(self, authorization: str, client: str) -> bool:
        """Check the password; always False while the client has to wait, so that response times reveal nothing."""
        if not authorization or self.wait(client):
            return False
        is_right = secrets.compare_digest(_password_in(authorization), self._secret)
        if not is_right:
            self._remember(client)
        return is_right

    def wait(self, client: str) -> int:
        """Return the seconds until this client may try again."""
        tries, last = self._wrong.get(_neighbourhood(client), (0, 0.0))
        pause = min(2.0 ** min(tries - FREE_TRIES, 10), LONGEST_WAIT) if tries >= FREE_TRIES else 0.0
        return max(0, math.ceil(last + pause - self._clock()))

    def _remember(self, client: str) -> None:
        place = _neighbourhood(client)
        tries, last = self._wrong.pop(place, (0, 0.0))
        self._wrong[place] = (1 if self._clock() - last > FORGOTTEN else tries + 1, self._clock())
        if len(self._wrong) > MOST_CLIENTS:
            self._wrong.popitem(last=False)


def _neighbourhood(client: str) -> str:
    """Return the /64 network of an IPv6 address, because one client usually has all of it."""
    return str(IPv6Network((client.partition("%")[0], 64), strict=False)) if ":" in client else client


def _password_in(authorization: str) -> bytes:
    """Return the password after the user name; empty if this is not basic authentication."""
    scheme, _, credentials = authorization.partition(" ")
    try:
        given = base64.b64decode(credentials, validate=True).partition(b":")[2]
    except ValueError:
        return b""
    return given if scheme.lower() == "basic" else b""


PATIENCE = 60.0  # seconds: the time that a picture of 5 MB takes at 0.7 Mbit/s
MOST_CONNECTIONS = 256  # each takes a file descriptor of this process


class PatientProtocol(H11Protocol):
    """An HTTP protocol that drops clients that stall."""

    _clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()

    def handle_events(self) -> None:
        super().handle_events()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()  # closes once everything is written, which an idle reader can delay
        self.loop.call_later(PATIENCE, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Run the timeout while the client still has to send the rest of a request or read a response."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY) and not self.flow.write_paused:
            self._stop()
        elif self._clock is None:
            self._clock = self.loop.call_later(PATIENCE, self.transport.abort)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None


HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^][:/@\\\s]+))(?::[0-9]{1,5})?")  # [IPv6] or a name, and optionally a port
PROTECTION = {
    "content-security-policy": "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


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
                MutableHeaders(scope=message).update(PROTECTION)
            await send(message)

        refusal = self._refusal(Headers(scope=scope), (scope.get("client") or ("",))[0])
        await (refusal or self._app)(scope, receive, protected)

    def _refusal(self, headers: Headers, client: str) -> JSONResponse | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_ours(host_name(host)):
            return _refused(400, "this server is called by another name; open it by its address")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return _refused(403, "this page belongs to another site")
        if self._password is None or self._password.is_known(given := headers.get("authorization", ""), client):
            return None
        if given and (seconds := self._password.wait(client)):
            return _refused(429, "too many wrong passwords; wait a little", {"retry-after": str(seconds)})
        return _refused(401, "the password is missing or wrong", {"www-authenticate": 'Basic realm="lddr explore"'})

    def _is_ours(self, name: str | None) -> bool:
        """Return False for names that a stranger could point here (DNS rebinding) to read the runs by a browser."""
        if name is None or name in self._names or not self._is_public:
            return name in self._names
        is_address = ":" in name or name.replace(".", "").isdigit()
        return self._password is not None or is_address or "." not in name or name.endswith(".local")


def host_name(host: str) -> str | None:
    """Return the host without port and IPv6 brackets; None if it is malformed."""
    found = HOST.fullmatch(host.lower())
    return found and (found[1] or found[2])


def _refused(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"message": message}, status, headers)
