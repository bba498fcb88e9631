"""Registries: things by name, registered by the modules that define them; unknown names get a suggestion."""

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Generic, TypeVar

from lddr.errors import UserError, hint
from lddr.files import reason_of

T = TypeVar("T")
PLUGINS = "LDDR_PLUGINS"  # modules that register a user's own parts, separated by commas


class Registry(Generic[T]):
    """Things of one kind by name; the `homes`, modules or packages, are imported at the first look-up."""

    def __init__(self, kind: str, homes: tuple[str, ...], or_else: str = "") -> None:
        """`or_else` ends the error about an unknown name: what a user may give instead."""
        self.kind, self._homes, self._or_else = kind, homes, or_else
        self._things: dict[str, T] = {}
        self._retired: dict[str, str] = {}
        self._filled = False

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that registers a thing as `name`."""

        def add(thing: T) -> T:
            if name in self._things:
                raise ValueError(f"two {self.kind}s are called {name!r}")
            self._things[name] = thing
            return thing

        return add

    def retire(self, name: str, successor: str) -> None:
        """Let the error for a former name suggest its successor."""
        self._retired[name] = successor

    def registered(self) -> list[str]:
        """Return the names in the order in which they were registered."""
        return list(self._fill())

    def _fill(self) -> dict[str, T]:
        if not self._filled:
            self._filled = True  # first, since modules may look something up while they are imported
            try:
                self._import_all()
            except BaseException:
                self._filled = False
                raise
        return self._things

    def _import_all(self) -> None:
        for home in self._homes:
            for module in iter_modules(getattr(import_module(home), "__path__", ())):
                import_module(f"{home}.{module.name}")
        for plugin in filter(None, map(str.strip, os.environ.get(PLUGINS, "").split(","))):
            _import_plugin(plugin)

    def __getitem__(self, name: str) -> T:
        things = self._fill()
        if name in self._retired and name not in things:
            raise UserError(f"the {self.kind} {name!r} is no more; use {self._retired[name]!r} in its place")
        if name not in things:
            raise UserError(
                f"unknown {self.kind} {name!r}; {hint(name, things)}Known: {', '.join(self)}{self._or_else}"
            )
        return things[name]

    def __contains__(self, name: object) -> bool:
        return name in self._fill()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._fill()))

    def __len__(self) -> int:
        return len(self._fill())


def _import_plugin(name: str) -> None:
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        raise UserError(
            f"${PLUGINS} names {name!r}, but {error.name!r} is not found; correct the name, or put it on PYTHONPATH"
        ) from error
    except UserError as error:
        raise UserError(f"${PLUGINS} names {name!r}: {error}") from error
    except Exception as error:  # it is the user's own code
        said = f"${PLUGINS} names {name!r}, which cannot be imported ({type(error).__name__}: {reason_of(error)})"
        raise UserError(f"{said}; fix it, with --debug for the traceback") from error
