"""The `lddr` command: it only parses and dispatches; each command imports heavy dependencies when it runs."""

import os
import sys
from importlib import import_module
from io import TextIOWrapper

import click

import lddr
from lddr.cli.app import app, sentence
from lddr.errors import UserError, suggesting_extras

for part in ["train", "data", "explore", "score", "select", "runs", "sweeps"]:
    import_module(f"lddr.cli.{part}")
app.order = (  # a newcomer's
    *("demo", "models", "data", "train", "show", "explore", "metrics", "evaluate", "score", "select"),
    *("runs", "compare", "report", "sweep", "push", "bench"),
)
COMPLETION = "_LDDR_COMPLETE"  # set by the shell when it completes a command


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user error prints one sentence on stderr and exits with code 2."""
    _take_any_text()
    given = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in given
    words = [word for word in given if word != "--debug"]
    if words == ["--version"]:
        print(f"lddr {lddr.__version__}")
        return
    try:
        with suggesting_extras():
            _import_plugins()
            if COMPLETION in os.environ:
                app.main(words, prog_name="lddr", complete_var=COMPLETION)
            with app.make_context("lddr", words) as context:
                app.invoke(context)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except (UserError, click.ClickException) as error:
        if debug:
            raise
        print(f"lddr: {sentence(error) if isinstance(error, click.UsageError) else error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # the reader closed the pipe: `lddr train --help | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt as stop:
        print(f"lddr: {str(stop) or 'stopped'}", file=sys.stderr)
        sys.exit(130)


def _import_plugins() -> None:
    """Report a plugin that cannot be imported, whatever the command: otherwise its parts would be unknown names."""
    from lddr.registry import PLUGINS

    if os.environ.get(PLUGINS):
        from lddr.latents import latents

        latents.registered()


def _take_any_text() -> None:
    """Print folder names that are not valid text with their bytes escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
