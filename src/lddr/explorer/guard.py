"""Who may ask: the right host name, the same origin, the password if there is one; and what the page may load."""

import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lddr.explorer.password import Password

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
    """Stands before the application; `names` are those of this machine, `is_public` if others may reach it."""

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
        """No name that a stranger could let lead here (DNS rebinding) to have a visitor's browser read the runs."""
        if name is None or name in self._names or not self._is_public:
            return name in self._names
        is_address = ":" in name or name.replace(".", "").isdigit()
        return self._password is not None or is_address or "." not in name or name.endswith(".local")


def host_name(host: str) -> str | None:
    """Without the port and the brackets of IPv6; None if it is no such thing."""
    found = HOST.fullmatch(host.lower())
    return found and (found[1] or found[2])


def _refused(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"message": message}, status, headers)
