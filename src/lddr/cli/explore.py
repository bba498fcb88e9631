"""`lddr explore`."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from lddr.cli.app import app


@app.command
def explore(
    folder: Annotated[Positional[Path], arg(metavar="FOLDER")] = Path("runs"),
    host: str = "127.0.0.1",
    port: int = 8421,
    password: Annotated[str | None, arg(metavar="PASSWORD")] = None,
    open_browser: bool = True,
) -> None:
    """Explore runs in the browser: see them all, turn the latents of a model by hand, compare two, read the scores.

    Args:
        folder: The folder that holds the runs, at any depth.
        host: The address to listen at; another one than 127.0.0.1 lets others see the runs.
        port: The port to listen at; 0 takes any free one.
        password: Ask for this password; better set LDDR_PASSWORD, which other users of the machine cannot see.
        open_browser: Open the page in the browser.
    """
    from lddr.explorer.commands import explore

    explore(folder, host, port, password, open_browser)
