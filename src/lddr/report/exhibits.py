"""What pages show: tables and figures, each made from runs by one file that registers it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from lddr.errors import UserError
from lddr.registry import Registry

Source = TypeVar("Source")  # what it is made from: groups of runs, or one run
Made = TypeVar("Made")
Missing = dict[str, str]  # title → what is missing for it


class UnwantedError(UserError):
    """Raised by what nobody would miss here."""


@dataclass(frozen=True)
class Exhibit(Generic[Source, Made]):
    """A table or a figure; `make` raises UndefinedError, one sentence, where the runs do not allow it."""

    name: str
    title: str
    order: int  # its place on a page
    make: Callable[[Source], Made]


class Exhibits(Registry[Exhibit[Source, Made]]):
    """All tables, or all figures of one kind."""

    def add(self, name: str, title: str, order: int) -> Callable[[Callable[[Source], Made]], Callable[[Source], Made]]:
        """Decorator: let pages show what this function makes."""

        def register(make: Callable[[Source], Made]) -> Callable[[Source], Made]:
            return self.register(name)(Exhibit(name, title, order, make)).make

        return register

    def in_order(self) -> list[Exhibit[Source, Made]]:
        """As they follow each other on a page."""
        return sorted((self[name] for name in self), key=lambda exhibit: exhibit.order)


def made(
    exhibits: Iterable[Exhibit[Source, Made]], source: Source, missing: Missing
) -> Iterator[tuple[Exhibit[Source, Made], Made]]:
    """Each with what it makes of the source; what cannot be made is noted with the reason."""
    for exhibit in exhibits:
        try:
            yield exhibit, exhibit.make(source)
        except UnwantedError:
            continue
        except UserError as reason:
            missing[exhibit.title] = str(reason)
