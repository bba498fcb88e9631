"""Conditions on named values, as users write them: "model=vae,dvae", "seed<5", "mig>0.3"."""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lddr.errors import UserError

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


def parse_condition(text: str) -> Condition:
    """From "mig>0.3"."""
    match = _CONDITION.fullmatch(text)
    if match is None or not match[3]:
        raise UserError(f"cannot read the condition {text!r}; write it like model=dvae, gamma=10,20 or seed<5")
    return Condition(*match.groups())


def as_number(value: Any) -> float | None:
    """The value as a number, None if it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _same(value: Any, text: str) -> bool:
    left, right = as_number(value), as_number(text)
    return str(value) == text if left is None or right is None else left == right
