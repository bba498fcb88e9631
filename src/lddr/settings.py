"""Settings: the default, help text, range and choices of each are declared once, in the class that it belongs to.

The command line, `configure`, studies, `lddr models`, the tables of the docs and the commands in reports are made from
these declarations.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Self

from lddr.data import as_resolution, height_and_width
from lddr.errors import UserError, hint

LARGEST_NUMBER = 1e30  # weights have 32 bits
LIMITS = ("at_least", "above", "at_most")


class Size:
    """The type of a setting that is a number of pixels for squares, or text such as "48x96"."""


KINDS = {
    Size: "a number of pixels, or HEIGHTxWIDTH such as 48x96",
    int: "a whole number",
    float: "a number",
    str: "text",
    tuple: "a list of whole numbers",
    bool: "true or false",
}


@dataclass(frozen=True)
class Rule:
    """The default, help text, type, range and choices of a setting."""

    default: Any
    help: str
    kind: type
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] = ()

    def fitting(self, name: str, value: Any) -> Any:
        """Return the value in the setting's type, so that 10, 10.0 and "10" are the same run, or raise UserError."""
        if (value is None and self.default is None) or (value in ((), []) and self.default == ()):
            return self.default
        fitting = _CONVERSIONS[self.kind](value)
        if fitting is None:
            raise UserError(f"{name} must be {KINDS[self.kind]}, not {value!r}")
        if self.choices and fitting not in self.choices:
            known, near = ", ".join(self.choices), hint(str(value), self.choices).strip()
            raise UserError(f"{name} must be one of {known}, not {value!r}" + (f"; {near}" if near else ""))
        for number in fitting if self.kind is tuple else [fitting]:
            self._check_range(name, number)
        return fitting

    def _check_range(self, name: str, value: Any) -> None:
        if self.at_least is not None and value < self.at_least:
            raise UserError(f"{name} must be at least {self.at_least:g}, not {value}")
        if self.above is not None and value <= self.above:
            raise UserError(f"{name} must be more than {self.above:g}, not {value}")
        if self.at_most is not None and value > self.at_most:
            raise UserError(f"{name} must be at most {self.at_most:g}, not {value}")
        if self.kind is float and abs(value) > LARGEST_NUMBER:
            raise UserError(f"{name} must be a number up to {LARGEST_NUMBER:g} in size, not {value:g}")


@dataclass(frozen=True)
class Setting:
    """Marks a constructor's parameter as a setting: `Annotated[int, Setting("What it does.", at_least=1)]`."""

    help: str
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None


def setting(default: Any, help: str, kind: type | None = None, **limits: Any) -> Any:  # noqa: A002
    """Return a dataclass field that is a setting; `limits` are at_least, above, at_most and choices."""
    return field(default=default, metadata={"rule": Rule(default, help, kind or type(default), **limits)})


def rules_of(piece: Any) -> dict[str, Rule]:
    """Return the settings of a dataclass or its instance, or of a part of a model, by name."""
    if (rules := getattr(piece, "rules", None)) is not None:
        return dict(rules)
    return dict(_declared(piece if isinstance(piece, type) else type(piece)))


@cache
def _declared(cls: Any) -> dict[str, Rule]:
    return {each.name: each.metadata["rule"] for each in fields(cls) if "rule" in each.metadata}


@dataclass(frozen=True)
class Settings:
    """A dataclass of settings, whose values are converted to their types and checked."""

    def __post_init__(self) -> None:
        for name, rule in rules_of(self).items():
            object.__setattr__(self, name, rule.fitting(name, getattr(self, name)))

    def changed(self, **settings: Any) -> Self:
        """Return a copy with other values for these settings."""
        return replace(self, **settings)


def flattened(nested: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run under their names on the command line, and the names of its parts.

    {"latent": {"name": "categorical", "num_latents": 6}} → {"latent": "categorical", "num_latents": 6}
    """
    flat: dict[str, Any] = {}
    for name, value in nested.items():
        if isinstance(value, Mapping):
            flat |= {name if inner in ("name", "loss") else inner: held for inner, held in value.items()}
        else:
            flat[name] = value
    return flat


# options of commands and columns of tables that are no settings
RESERVED = (
    "model latent objective likelihood dataset preset supervision out device threads compile tensorboard "
    "checkpoint_seconds quiet name loss state run folder checksum"
)
_owners: dict[str, tuple[str, type]] = dict.fromkeys(RESERVED.split(), ("the command line", object))


def claim(part: str, class_name: str, rules: Mapping[str, Rule]) -> None:
    """Reserve the names of settings for a part of a run, since each name is one flag of the command line.

    Raise ValueError for a name of another part, or if two latents or objectives have it with different types.
    """
    for name, rule in rules.items():
        owner, kind = _owners.setdefault(name, (part, rule.kind))
        if (owner, kind) != (part, rule.kind):
            raise ValueError(f"the setting {name!r} of {class_name} is taken by {owner} ({kind.__name__})")


@dataclass(frozen=True)
class SharedSetting:
    """A setting with the rules of all its owners: latents, objectives and likelihoods, or other parts of a run."""

    rules: Mapping[str, Rule]

    @property
    def kind(self) -> type:
        return next(iter(self.rules.values())).kind

    @property
    def choices(self) -> tuple[str, ...]:
        return next(iter(self.rules.values())).choices

    @property
    def help(self) -> str:
        texts = _with_owners({owner: rule.help.rstrip(".") for owner, rule in self.rules.items()})
        return " ".join(f"{text}." for text in texts)

    @property
    def default(self) -> str:
        """The default as text."""
        return ", ".join(_with_owners({owner: as_text(rule.default) for owner, rule in self.rules.items()}))


def shared_settings(pieces: Iterable[tuple[str, Any]]) -> dict[str, SharedSetting]:
    """Return all settings of (owner, piece) pairs by name, in order of appearance."""
    found: dict[str, dict[str, Rule]] = {}
    for owner, piece in pieces:
        for name, rule in rules_of(piece).items():
            found.setdefault(name, {})[owner] = rule
    return {name: SharedSetting(rules) for name, rules in found.items()}


def _with_owners(texts: Mapping[str, str]) -> list[str]:
    """Return the text that all owners share, or else each text with its owners."""
    owners: dict[str, list[str]] = {}
    for owner, text in texts.items():
        owners.setdefault(text, []).append(owner)
    return list(owners) if len(owners) == 1 else [f"{text} ({', '.join(own)})" for text, own in owners.items()]


def as_text(value: Any) -> str:
    """Return a value as it is written on the command line; numbers have as many digits as people write."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


# conversions: None if the value is not of the type


def _whole(value: Any) -> int | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        if isinstance(value, str):
            value = int(value) if value.strip().lstrip("+-").isdecimal() else _number(value)
        return int(value) if int(value) == value else None
    except (TypeError, ValueError, OverflowError):
        return None


def _number(value: Any) -> float | None:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _wholes(value: Any) -> tuple[int, ...] | None:
    value = value.split(",") if isinstance(value, str) else value
    numbers = [_whole(each) for each in value] if isinstance(value, Iterable) else []
    return None if None in numbers or not numbers else tuple(numbers)  # type: ignore[arg-type]


def _size(value: Any) -> int | str | None:
    number = _whole(value)
    try:
        return as_resolution(*height_and_width(value if number is None else number))
    except UserError:
        return None


_CONVERSIONS: dict[type, Callable[[Any], Any]] = {
    int: _whole,
    float: _number,
    str: lambda value: value if isinstance(value, str) else None,
    tuple: _wholes,
    bool: lambda value: {"true": True, "false": False}.get(str(value).lower()),
    Size: _size,
}
