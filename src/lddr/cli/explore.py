"""`lddr explore`."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from lddr.cli.app import LEFT_OUT, app
from lddr.console import say
from lddr.errors import UserError, check_installed

if TYPE_CHECKING:
    from socket import socket

    from starlette.types import ASGIApp

PASSWORD = "LDDR_PASSWORD"


@app.command
def explore(
    folder: Annotated[Positional[Path | None], arg(metavar="FOLDER", help_behavior_hint="(default: runs)")] = None,
    pretrained: bool = False,
    host: str = "127.0.0.1",
    port: int = 8421,
    password: Annotated[str | None, arg(metavar="PASSWORD", help_behavior_hint=LEFT_OUT)] = None,
    device: str = "auto",
    open_browser: bool = True,
) -> None:
    """Explore runs in the browser: list them, move the latents of a model, compare two models, read the scores.

    Args:
        folder: The folder that holds the runs, at any depth, or the name of a model that ships with lddr.
        pretrained: Explore all models that ship with lddr.
        host: The address to listen at; another one than 127.0.0.1 lets others see the runs.
        port: The port to listen at; 0 takes any free one.
        password: Ask for this password; better set LDDR_PASSWORD, which other users of the machine cannot see.
        device: Where the networks run: cpu, cuda, mps, or auto for the best there is.
        open_browser: Open the page in the browser.
    """
    from lddr.explorer.guard import is_loopback, listening, names_of
    from lddr.explorer.server import create_app

    check_installed("torch", "safetensors")  # the page opens models later, in another process
    root = _root(folder, pretrained)
    if device != "auto":  # "auto" is always available, and importing torch takes seconds
        from lddr.hardware import chosen_device

        chosen_device(device)
    secret, is_local = os.environ.get(PASSWORD) if password is None else password, is_loopback(host)
    if not is_local:
        say(warning(host, secret is not None))
    with listening(host, port) as place, suppress(KeyboardInterrupt):  # Ctrl-C is the usual way to stop
        _serve(create_app(root, secret, names_of(host), not is_local, device), host, place, open_browser)


def _root(folder: Path | None, pretrained: bool) -> Path:
    """Return the folder to explore."""
    from lddr.runs.folder import PRETRAINED, located

    if pretrained and folder is not None:
        raise UserError("give a folder or --pretrained, not both")
    root = PRETRAINED if pretrained else located(folder or Path("runs"))
    if not root.is_dir():
        others = "see those that ship with lddr: lddr explore --pretrained"
        raise UserError(f"there is no folder {root}; give the one that holds the runs, or {others}")
    return root


def _serve(application: "ASGIApp", host: str, place: "socket", open_browser: bool) -> None:
    import threading
    import webbrowser

    from lddr.explorer.guard import url
    from lddr.explorer.server import server

    address = url(host, place.getsockname()[1])
    print(f"the explorer is at {address} (Ctrl-C ends it)", flush=True)
    if open_browser:  # the socket listens already, so the browser's request waits until the server is ready
        threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
    server(application).run(sockets=[place])


def warning(host: str, has_password: bool) -> str:
    """Return the warning for a server that other machines can reach."""
    who = "whoever knows the password" if has_password else "everybody"
    remedy = "" if has_password else f"; set a password with --password or {PASSWORD}"
    return f"{who} who can reach {host} can see these runs, and nothing is encrypted on the way{remedy}"
