"""The `lddr` command: parse and dispatch, nothing else; what a command needs is imported when it runs."""

import os
import sys
from importlib import import_module

from lddr.cli.app import DESCRIPTION, app
from lddr.errors import UserError

for part in ("train", "score", "sweeps", "report", "explore", "data", "bench"):  # in the order of the help
    import_module(f"lddr.cli.{part}")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user's mistake is one sentence on stderr and exit code 2."""
    given = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in given
    if "train" in given:
        import_module("lddr.cli.train").know_settings()
    try:
        app.cli(prog="lddr", description=DESCRIPTION, args=[word for word in given if word != "--debug"])
    except UserError as error:
        if debug:
            raise
        print(f"lddr: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # whoever read has read enough: `lddr train --help | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt as stop:
        print(f"lddr: {stop if str(stop) else 'stopped'}", file=sys.stderr)
        sys.exit(130)
