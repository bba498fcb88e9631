"""The page of all commands, generated from their parser."""

import re
from inspect import cleandoc

import click

from lddr.cli import app
from lddr.cli.app import every_command

HEAD = """# Commands
Every command with its arguments, generated from the parser by `make pages`. `lddr train --help` prints the same in the
terminal, `lddr --version` the version; `--debug`, anywhere on the line, shows the traceback of an error.
[Shell completion](faq.md#can-the-shell-complete-commands) is available.
"""


def text() -> str:
    return "\n".join([HEAD, *(_section(name, command) for name, command in every_command(app))])


def _section(name: str, command: click.Command) -> str:
    context = click.Context(command, show_default=True)
    records = [each.get_help_record(context) for each in command.get_params(context) if "--help" not in each.opts]
    rows = ["| argument | what it does |", "| --- | --- |", *(_row(*record) for record in records if record)]
    return "\n".join([f"## `{name}`", cleandoc(command.help or ""), "", *(rows if records else []), ""])


def _row(name: str, about: str) -> str:
    about = re.sub(r"\s*\[default: (.+)\]$", r" Default: `\1`.", about)
    return f"| `{name}` | {about} |"
