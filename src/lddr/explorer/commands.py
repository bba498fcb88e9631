"""What `lddr explore` does."""

import ipaddress
import os
import socket
import sys
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path

from lddr.errors import UserError

PASSWORD = "LDDR_PASSWORD"


def explore(
    root: Path,
    host: str = "127.0.0.1",
    port: int = 8421,
    password: str | None = None,
    open_browser: bool = True,
) -> None:
    """Serve the page over the runs below a folder until Ctrl-C."""
    try:
        from lddr.explorer.guard import LOOPBACK
        from lddr.explorer.server import create_app, server
    except ImportError as error:
        raise UserError("the explorer is not installed; get it with: pip install 'lddr[explore]'") from error
    if not root.is_dir():
        raise UserError(f"there is no folder {root}; give the one that holds the runs")
    secret = password or os.environ.get(PASSWORD) or None
    is_local = is_loopback(host)
    if not is_local:
        print(f"lddr: {warning(host, secret is not None)}", file=sys.stderr, flush=True)
    with listening(host, port) as place:
        app = create_app(root, secret, LOOPBACK | {host} if is_local else None)
        address = url(host, place.getsockname()[1])
        print(f"the explorer is at {address} (Ctrl-C ends it)", flush=True)
        if open_browser:  # the socket listens already: what the browser asks waits until the server is there
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
        with suppress(KeyboardInterrupt):  # the usual end
            server(app).run(sockets=[place])


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def warning(host: str, has_password: bool) -> str:
    """What a user should know who opens the page to others."""
    who = "whoever knows the password" if has_password else "everybody"
    remedy = "" if has_password else f"; set a password with --password or {PASSWORD}"
    return f"{who} who can reach {host} can see these runs, and nothing is encrypted on the way{remedy}"


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 is any free one."""
    if not 0 <= port <= 65535:
        raise UserError(f"a port is a number from 0 to 65535, not {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"cannot listen at {host} port {port} ({reason}); choose another with --port") from error


def url(host: str, port: int) -> str:
    """What to type into a browser on this machine."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # those mean every address
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"
