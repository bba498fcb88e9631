"""The command tree, and the argument types that several commands share."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, UseAppendAction, arg
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
# a list is one word with commas; values that may contain commas are options that can be repeated
Conditions = Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="CONDITION")]
Changes = Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="METRIC.SETTING=VALUE")]
Columns = Annotated[str, arg(metavar="NAME,NAME…")]
LEFT_OUT = ""  # instead of "(default: None)": the help text explains the default
File = Annotated[Path | None, arg(metavar="FILE", help_behavior_hint=LEFT_OUT)]
Tracker = Annotated[str | None, arg(metavar="{wandb,mlflow,trackio}", help_behavior_hint=LEFT_OUT)]
Whole = Annotated[int | None, arg(metavar="INT", help_behavior_hint=LEFT_OUT)]


def listed(words: str) -> list[str]:
    """Split a comma-separated list."""
    return [word.strip() for word in words.split(",") if word.strip()]
