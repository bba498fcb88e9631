"""Commands from Python: `called("runs ls", folder, where=["mig>0.3"], json=True)`."""

from collections.abc import Iterator
from typing import Any

from lddr.cli import main


def called(command: str, *arguments: object, **options: Any) -> None:
    """Run a command; an error of the user is raised, not printed."""
    words = [word for name, value in options.items() for word in _words(f"--{name.replace('_', '-')}", value)]
    main(["--debug", *command.split(), *map(str, arguments), *words])


def _words(flag: str, value: Any) -> Iterator[str]:
    if value is True:
        yield flag
    elif value is not False and value is not None:
        for each in value if isinstance(value, list) else [value]:
            yield f"{flag}={each}"
