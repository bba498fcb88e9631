"""The tree of commands, and the types of arguments that several commands share."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg
from tyro.extras import SubcommandApp

DESCRIPTION = """Learn, score and choose disentangled discrete representations.

Every command explains itself with --help. --version tells the version; --debug, anywhere, shows the traceback of an
error."""

app = SubcommandApp()

Name = Annotated[Positional[str], arg(metavar="NAME")]
Names = Annotated[Positional[tuple[str, ...]], arg(metavar="NAME...")]
Folder = Annotated[Path, arg(metavar="FOLDER")]
Roots = Annotated[Positional[tuple[Path, ...]], arg(metavar="FOLDER...")]
RunName = Annotated[Positional[str], arg(metavar="RUN")]
Conditions = Annotated[tuple[str, ...], arg(metavar="CONDITION...")]
LEFT_OUT = ""  # instead of "(default: None)": the help says itself what happens then
File = Annotated[Path | None, arg(metavar="FILE", help_behavior_hint=LEFT_OUT)]
Whole = Annotated[int | None, arg(metavar="INT", help_behavior_hint=LEFT_OUT)]
ColumnNames = Annotated[tuple[str, ...], arg(metavar="COLUMN...")]
Changes = Annotated[tuple[str, ...], arg(metavar="METRIC.SETTING=VALUE...")]
