"""Conditions on named values, as users write them: "model=vae,dvae", "seed<5", "mig>0.3"."""

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from lddr.errors import UserError, unknown

T = TypeVar("T")
ORDERS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_CONDITION = re.compile(r"\s*([^<>=!\s]+)\s*(<=|>=|!=|==|=|<|>)\s*(.*?)\s*")


@dataclass(frozen=True)
class Condition:
    """The name of a value, a comparison, and what to compare with: for equality, one text or several with commas."""

    name: str
    comparison: str
    wanted: str

    @property
    def is_order(self) -> bool:
        return self.comparison in ORDERS

    def holds(self, value: Any) -> bool:
        """Numbers are compared as numbers; what is none is neither smaller nor larger than anything."""
        if self.is_order:
            left, right = as_number(value), as_number(self.wanted)
            return left is not None and right is not None and ORDERS[self.comparison](left, right)
        choices = [self.wanted, *(text.strip() for text in self.wanted.split(","))]  # a value may have commas itself
        return any(_same(value, text) for text in choices) == (self.comparison != "!=")

    def check(self, values: Iterable[Any]) -> None:
        """Refuse to order words, or by a word."""
        there = [value for value in values if value is not None]
        if self.is_order and there and all(isinstance(value, str) for value in there):
            raise UserError(f"{self.name} holds words, which are not ordered; compare it with = or !=")
        if self.is_order and as_number(self.wanted) is None:
            raise UserError(f"{self.name} holds numbers; compare it with a number, not {self.wanted!r}")


def parse_condition(text: str) -> Condition:
    """From "mig>0.3"."""
    match = _CONDITION.fullmatch(text)
    if match is None or not match[3]:
        raise UserError(f"cannot read the condition {text!r}; write it like model=dvae, gamma=10,20 or seed<5")
    return Condition(*match.groups())


def meeting(things: Iterable[T], texts: Iterable[str], value: Callable[[T, str], Any], known: Iterable[str]) -> list[T]:
    """The things that meet all conditions; what has no value of a name is "none".

    Refused are names that are not known, and an order between words.
    """
    left, names = list(things), list(known)
    for condition in map(parse_condition, texts if left else ()):
        if condition.name not in names:
            raise UserError(unknown("column", condition.name, [name for name in names if "." not in name]))
        condition.check(value(thing, condition.name) for thing in left)
        found = [(thing, value(thing, condition.name)) for thing in left]
        left = [thing for thing, each in found if condition.holds("none" if each is None else each)]
    return left


def as_number(value: Any) -> float | None:
    """The value as a number, None if it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _same(value: Any, text: str) -> bool:
    left, right = as_number(value), as_number(text)
    return str(value) == text if left is None or right is None else left == right
