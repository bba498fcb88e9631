"""The `lddr` command: it only parses and dispatches; each command imports its dependencies when it runs."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

from tyro.extras import SubcommandApp

import lddr
from lddr.cli.app import DESCRIPTION, app
from lddr.errors import UserError, hint, suggesting_extras

PARTS = "train score sweeps runs select report explore push data bench"  # in the order of the help
for part in PARTS.split():
    import_module(f"lddr.cli.{part}")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user error prints one sentence on stderr and exits with code 2."""
    _take_any_text()
    given = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in given
    words = _joined([word for word in given if word != "--debug"])
    if words == ["--version"]:
        print(f"lddr {lddr.__version__}")
        return
    try:
        with suggesting_extras():
            training = import_module("lddr.cli.train")
            training.know_settings()  # includes those of plugins, which may be misspelt
            if words[:1] == ["train"]:
                words = training.with_plain_flags(words)
            if "select" in words:
                import_module("lddr.cli.select").know_selectors()
            _check_command(app, words)
            app.cli(prog="lddr", description=DESCRIPTION, args=words)
    except UserError as error:
        if debug:
            raise
        print(f"lddr: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # the reader closed the pipe: `lddr train --help | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt as stop:
        print(f"lddr: {stop if str(stop) else 'stopped'}", file=sys.stderr)
        sys.exit(130)


def _joined(words: list[str]) -> list[str]:
    """Join `--sort -mig` into one word, because it would be parsed as two options."""
    if "--sort" not in words[:-1]:
        return words
    place = words.index("--sort")
    return [*words[:place], f"--sort={words[place + 1]}", *words[place + 2 :]]


def _take_any_text() -> None:
    """Print folder names that are not valid text with their bytes escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _check_command(commands: SubcommandApp, words: Sequence[str], before: str = "lddr") -> None:
    """Refuse an unknown command and suggest the nearest one, before tyro lists them all."""
    known = commands._subcommands
    if not words or words[0].startswith("-"):
        return
    if words[0] not in known:
        near = hint(words[0], known)
        raise UserError(f"{before} has no command {words[0]!r}; {near}There are: {', '.join(known)}")
    inner = known[words[0]].target
    if isinstance(inner, SubcommandApp):
        _check_command(inner, words[1:], f"{before} {words[0]}")
