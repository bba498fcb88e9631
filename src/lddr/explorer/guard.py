"""Who may ask: the right host name, the same origin, the password if there is one; and what the page may load."""

import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lddr.explorer.password import Password

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^][:/@\\\s]+))(?::[0-9]{1,5})?")  # [IPv6] or a name, and perhaps a port
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
    """Stands before the application; `hosts` are the names it may be called by, None for any."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str] | None, password: Password | None) -> None:
        self._app, self._hosts, self._password = app, hosts, password

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
        if self._hosts is not None and host_name(host) not in self._hosts:  # DNS rebinding
            return _refused(400, "this server is called by another name; open it by the address it printed")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return _refused(403, "this page belongs to another site")
        if self._password is None or self._password.is_known(given := headers.get("authorization", ""), client):
            return None
        if given and (seconds := self._password.wait(client)):
            return _refused(429, "too many wrong passwords; wait a little", {"retry-after": str(seconds)})
        return _refused(401, "the password is missing or wrong", {"www-authenticate": 'Basic realm="lddr explore"'})


def host_name(host: str) -> str | None:
    """Without the port and the brackets of IPv6; None if it is no such thing."""
    found = HOST.fullmatch(host.lower())
    return found and (found[1] or found[2])


def _refused(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"message": message}, status, headers)
