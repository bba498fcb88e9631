"""The page of all commands, generated from their parser."""

import re
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import getdoc
from typing import Any

from tyro.extras import SubcommandApp, get_parser

HEAD = """# Commands
Every command with its arguments, generated from the parser by `make pages`. `lddr train --help` prints the same in the
terminal, `lddr --version` the version; `--debug`, anywhere on the line, shows the traceback of an error.
[Shell completion](faq.md#can-the-shell-complete-commands) is available.
"""


def text() -> str:
    import_module("lddr.cli.train").know_settings()
    import_module("lddr.cli.select").know_selectors()
    from lddr.cli.app import app

    return "\n".join([HEAD, *(_section(name, command) for name, command in commands(app))])


def commands(app: SubcommandApp, before: str = "lddr") -> Iterator[tuple[str, Callable[..., None]]]:
    """Every command with its whole name."""
    for name, spec in app._subcommands.items():
        if isinstance(spec.target, SubcommandApp):
            yield from commands(spec.target, f"{before} {name}")
        else:
            yield f"{before} {name}", spec.target


def _section(name: str, command: Callable[..., None]) -> str:
    about = (getdoc(command) or "").partition("\nArgs:")[0].strip()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there is no other way to ask tyro yet
        actions = [action for action in get_parser(command)._actions if action.dest != "help"]
    rows = ["| argument | what it does |", "| --- | --- |", *map(_row, actions)] if actions else []
    return "\n".join([f"## `{name}`", about, "", *rows, ""])


def _row(action: Any) -> str:
    values = action.metavar or ""
    flag, other = ([*action.option_strings, "", ""])[:2]
    turned_off = f" / `{other}`" if other.startswith("--no-") else ""
    name = " ".join(filter(None, [flag, values]))
    about = re.sub(r"\(default: (.+)\)", r"Default: `\1`.", (action.help or "").replace("%%", "%"))
    return f"| `{name}`{turned_off} | {about.replace('Default: `False`.', '').replace('(required)', '').strip()} |"
