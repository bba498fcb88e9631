"""The contents of pages: tables and figures, each made from runs by one registered function."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from lddr.errors import UserError
from lddr.registry import Registry

Source = TypeVar("Source")  # the input: groups of runs, or one run
Made = TypeVar("Made")
Missing = dict[str, str]  # title → why it is missing


class UnwantedError(UserError):
    """Raised by an exhibit that is irrelevant here, so that its absence is not reported."""


@dataclass(frozen=True)
class Exhibit(Generic[Source, Made]):
    """A table or a figure; `make` raises UndefinedError, with a one-sentence message, if the runs do not allow it."""

    name: str
    title: str
    order: int  # its position on a page
    make: Callable[[Source], Made]


class Exhibits(Registry[Exhibit[Source, Made]]):
    """All tables, or all figures of one type."""

    def add(self, name: str, title: str, order: int) -> Callable[[Callable[[Source], Made]], Callable[[Source], Made]]:
        """Register the decorated function's result for display on pages."""

        def register(make: Callable[[Source], Made]) -> Callable[[Source], Made]:
            return self.register(name)(Exhibit(name, title, order, make)).make

        return register

    def in_order(self) -> list[Exhibit[Source, Made]]:
        """Return the exhibits in their order on a page."""
        return sorted((self[name] for name in self), key=lambda exhibit: exhibit.order)


def made(
    exhibits: Iterable[Exhibit[Source, Made]], source: Source, missing: Missing
) -> Iterator[tuple[Exhibit[Source, Made], Made]]:
    """Return each exhibit with its result; those that cannot be made are listed with the reason."""
    for exhibit in exhibits:
        try:
            yield exhibit, exhibit.make(source)
        except UnwantedError:
            continue
        except UserError as reason:
            missing[exhibit.title] = str(reason)
