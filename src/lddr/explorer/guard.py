"""Who may ask: the right host name, the same origin, the password if there is one; and what the page may load."""

import base64
import secrets
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
POLICY = "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'none'; "
PROTECTION = {
    "content-security-policy": POLICY + "frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


class Guard:
    """Stands before the application; `hosts` are the names it may be called by, None for any."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str] | None, password: str | None) -> None:
        self._app, self._hosts, self._password = app, hosts, password

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(PROTECTION)
            await send(message)

        refusal = self._refusal(Headers(scope=scope))
        await (refusal or self._app)(scope, receive, protected)

    def _refusal(self, headers: Headers) -> JSONResponse | None:
        host = headers.get("host", "")
        if self._hosts is not None and host_name(host) not in self._hosts:  # DNS rebinding
            return _refused(400, "this server is called by another name; open it by the address it printed")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return _refused(403, "this page belongs to another site")
        if self._password is not None and not _knows(headers.get("authorization", ""), self._password):
            return _refused(401, "the password is missing or wrong", {"www-authenticate": 'Basic realm="lddr explore"'})
        return None


def host_name(host: str) -> str:
    """Without the port and the brackets of IPv6."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _refused(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"message": message}, status, headers)


def _knows(authorization: str, password: str) -> bool:
    """Whether this is HTTP basic authentication with the password, under any user name; compared in constant time."""
    scheme, _, credentials = authorization.partition(" ")
    try:
        given = base64.b64decode(credentials, validate=True).partition(b":")[2]
    except ValueError:
        return False
    return scheme.lower() == "basic" and secrets.compare_digest(given, password.encode())
