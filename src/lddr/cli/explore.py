"""`lddr explore`."""

import os
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path

from lddr.cli.app import FILE, app, argument, device, flag, option
from lddr.console import say
from lddr.errors import UserError, check_installed
from lddr.hardware import chosen_device
from lddr.runs.folder import PRETRAINED, located

PASSWORD = "LDDR_PASSWORD"


@app.command()
@argument(
    "folder",
    "[FOLDER]",
    required=False,
    type=FILE,
    help="A folder that holds runs, at any depth, or the name of a shipped model.  [default: runs]",
)
@flag("--pretrained", "Explore all models that ship with lddr.")
@option("--host", default="127.0.0.1", help="The address to listen at; any other lets other machines see the runs.")
@option("--port", type=int, default=8421, help="The port to listen at; 0 takes a free one.")
@option("--password", help=f"Ask for this password; {PASSWORD} is safer, because other users cannot see it.")
@device
@option("--open-browser/--no-open-browser", default=True, help="Open the page in the browser.")
def explore(
    folder: Path | None,
    pretrained: bool,
    host: str,
    port: int,
    password: str | None,
    device: str,
    open_browser: bool,
) -> None:
    """Explore trained models in the browser."""
    from lddr.explorer.guard import is_loopback, listening, names_of, url
    from lddr.explorer.server import create_app, server

    check_installed("torch", "safetensors")  # the page opens models later, in another process
    root = _root(folder, pretrained)
    if device != "auto":  # "auto" is always available, and importing torch takes seconds
        chosen_device(device)
    secret, is_local = os.environ.get(PASSWORD) if password is None else password, is_loopback(host)
    if not is_local:
        say(network_warning(host, secret is not None))
    with listening(host, port) as place, suppress(KeyboardInterrupt):  # Ctrl-C is the usual way to stop
        application = create_app(root, secret, names_of(host), not is_local, device)
        address = url(host, place.getsockname()[1])
        print(f"the explorer is at {address} (stop it with Ctrl-C)", flush=True)
        if open_browser:  # the socket listens already, so the browser's request waits until the server is ready
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
        server(application).run(sockets=[place])


def _root(folder: Path | None, pretrained: bool) -> Path:
    if pretrained and folder is not None:
        raise UserError("give a folder or --pretrained, not both")
    root = PRETRAINED if pretrained else located(folder or Path("runs"))
    if not root.is_dir():
        others = "explore the models that ship with lddr: lddr explore --pretrained"
        raise UserError(f"there is no folder {root}; give one that holds runs, or {others}")
    return root


def network_warning(host: str, has_password: bool) -> str:
    """Return the warning for a server that other machines can reach."""
    who = "everybody who knows the password and" if has_password else "everybody who"
    remedy = "" if has_password else f"; set a password with --password or {PASSWORD}"
    return f"{who} can reach {host} can see these runs, and the connection is not encrypted{remedy}"
