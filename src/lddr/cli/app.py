"""The tree of commands, and the types of arguments that several commands share."""

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
# a list is one word with commas; what may have commas itself is an option that can be given several times
Conditions = Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="CONDITION")]
Changes = Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="METRIC.SETTING=VALUE")]
Columns = Annotated[str, arg(metavar="NAME,NAME…")]
LEFT_OUT = ""  # instead of "(default: None)": the help says itself what happens then
File = Annotated[Path | None, arg(metavar="FILE", help_behavior_hint=LEFT_OUT)]
Tracker = Annotated[str | None, arg(metavar="{wandb,mlflow,trackio}", help_behavior_hint=LEFT_OUT)]
Whole = Annotated[int | None, arg(metavar="INT", help_behavior_hint=LEFT_OUT)]


def listed(words: str) -> list[str]:
    """What stands between the commas."""
    return [word.strip() for word in words.split(",") if word.strip()]
