"""Every setting once: default, help, range and choices stand in the dataclass it belongs to; all others ask here.

The command line, `configure`, studies, `lddr models`, the tables of the docs and the exact command of a report come
from these declarations.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from types import MappingProxyType
from typing import Any

from lddr.data import as_resolution, height_and_width
from lddr.errors import UserError, hint

LARGEST = 1e30  # of a number: weights have 32 bits


class Size:
    """The kind of a setting that is a number of pixels for squares, or text such as "48x96"."""


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
    """What is known of a setting besides its name."""

    default: Any
    help: str
    kind: type
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] = ()

    def fitting(self, name: str, value: Any) -> Any:
        """The value in the setting's own type, so that 10, 10.0 and "10" are the same run; else a sentence."""
        if value is None and self.default is None:
            return None
        fitting = _CONVERSIONS[self.kind](value)
        if fitting is None:
            raise UserError(f"{name} must be {KINDS[self.kind]}, not {value!r}")
        if self.choices and fitting not in self.choices:
            known, near = ", ".join(self.choices), hint(str(value), self.choices).strip()
            raise UserError(f"{name} must be one of {known}, not {value!r}" + (f"; {near}" if near else ""))
        for number in fitting if self.kind is tuple else [fitting]:
            self._check_range(name, number)
        if self.kind is float and abs(fitting) > LARGEST:
            raise UserError(f"{name} must be a number up to {LARGEST:g} in size, not {fitting:g}")
        return fitting

    def _check_range(self, name: str, value: Any) -> None:
        if self.at_least is not None and value < self.at_least:
            raise UserError(f"{name} must be at least {self.at_least:g}, not {value}")
        if self.above is not None and value <= self.above:
            raise UserError(f"{name} must be more than {self.above:g}, not {value}")
        if self.at_most is not None and value > self.at_most:
            raise UserError(f"{name} must be at most {self.at_most:g}, not {value}")


@dataclass(frozen=True)
class Setting:
    """Marks a constructor's parameter as a setting: `Annotated[int, Setting("What it does.", at_least=1)]`."""

    help: str
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None


def setting(default: Any, help: str, kind: type | None = None, **limits: Any) -> Any:  # noqa: A002
    """A dataclass field that is a setting: `limits` are at_least, above, at_most and choices."""
    return field(default=default, metadata={"rule": Rule(default, help, kind or type(default), **limits)})


def rules_of(piece: Any) -> dict[str, Rule]:
    """The settings of a dataclass or an instance of it, or of a part of a model, by name."""
    if not is_dataclass(piece) or "rules" in {each.name for each in fields(piece)}:
        return dict(piece.rules)
    return {each.name: each.metadata["rule"] for each in fields(piece) if "rule" in each.metadata}


def flattened(nested: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run under their names on the command line; what a part is called stands under the part's name.

    {"latent": {"name": "categorical", "num_latents": 6}} → {"latent": "categorical", "num_latents": 6}
    """
    flat: dict[str, Any] = {}
    for name, value in nested.items():
        if isinstance(value, Mapping):
            flat |= {name if inner in ("name", "loss") else inner: held for inner, held in value.items()}
        else:
            flat[name] = value
    return flat


@dataclass(frozen=True)
class Settings:
    """A dataclass of settings; whoever makes one gets values of the right type and in their range, or a sentence."""

    def __post_init__(self) -> None:
        for name, rule in rules_of(self).items():
            object.__setattr__(self, name, rule.fitting(name, getattr(self, name)))

    def changes(self, usual: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
        """The settings that are not as `usual`, where it says nothing at their defaults."""
        values = {name: getattr(self, name) for name in rules_of(self)}
        return {name: value for name, value in values.items() if value != usual.get(name, self.default_of(name))}

    @classmethod
    def default_of(cls, name: str) -> Any:
        return rules_of(cls)[name].default


class Claims:
    """Which part of a run a setting's name belongs to: one name, one part, or it is an error at import."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._parts: dict[str, tuple[str, type]] = dict.fromkeys(reserved, ("the command line", object))

    def claim(self, part: str, piece: Any) -> None:
        """Take the names of a dataclass for a part; several latents or objectives may share a name of one type."""
        for name, rule in rules_of(piece).items():
            owner, kind = self._parts.setdefault(name, (part, rule.kind))
            if (owner, kind) != (part, rule.kind):
                raise ValueError(f"the setting {name!r} of {_name(piece)} is taken by {owner} ({kind.__name__})")


def _name(piece: Any) -> str:
    return getattr(piece, "class_name", None) or piece.__name__


# what commands and lists of runs have beside the settings of a run
RESERVED = "model latent objective likelihood dataset preset supervision out device threads compile tensorboard"
claims = Claims(f"{RESERVED} checkpoint_seconds quiet name loss state run folder checksum".split())


@dataclass(frozen=True)
class Described:
    """A setting as all its owners see it: for the command line and the docs."""

    name: str
    rules: Mapping[str, Rule]  # by owner: the name of a latent family or objective, or of the part of the run

    @property
    def kind(self) -> type:
        return next(iter(self.rules.values())).kind

    @property
    def help(self) -> str:
        """What it is; where the owners differ, for each of them."""
        helps: dict[str, list[str]] = {}
        for owner, rule in self.rules.items():
            helps.setdefault(rule.help, []).append(owner)
        if len(helps) == 1:
            return next(iter(helps))
        return " ".join(f"{text.rstrip('.')} ({', '.join(owners)})." for text, owners in helps.items())

    def check(self, name: str, value: Any) -> None:
        """Refuse, under the name a user knows it by, what none of its owners takes."""
        for rule in self.rules.values():
            rule.fitting(name, value)

    @property
    def choices(self) -> tuple[str, ...]:
        return next(iter(self.rules.values())).choices

    @property
    def default(self) -> str:
        """The default in words."""
        defaults = {owner: _shown(rule.default) for owner, rule in self.rules.items()}
        if len(set(defaults.values())) == 1:
            return next(iter(defaults.values()))
        owners = {value: [owner for owner in defaults if defaults[owner] == value] for value in defaults.values()}
        return ", ".join(f"{value} ({', '.join(those)})" for value, those in owners.items())


def described(pieces: Iterable[tuple[str, Any]]) -> dict[str, Described]:
    """All settings of some (owner, dataclass) pairs, by name, in order of appearance."""
    found: dict[str, dict[str, Rule]] = {}
    for owner, piece in pieces:
        for name, rule in rules_of(piece).items():
            found.setdefault(name, {})[owner] = rule
    return {name: Described(name, rules) for name, rules in found.items()}


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


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
        number = None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number is not None and math.isfinite(number) else None


def _wholes(value: Any) -> tuple[int, ...] | None:
    value = value.split(",") if isinstance(value, str) else value
    if not isinstance(value, Iterable):
        return None
    numbers = [_whole(each) for each in value]
    return None if None in numbers or not numbers else tuple(numbers)  # type: ignore[arg-type]


def _truth(value: Any) -> bool | None:
    return {"true": True, "false": False}.get(str(value).lower())


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _size(value: Any) -> int | str | None:
    number = _whole(value)
    try:
        return as_resolution(*height_and_width(value if number is None else number))
    except UserError:
        return None


_CONVERSIONS: dict[type, Callable[[Any], Any]] = {
    int: _whole,
    float: _number,
    str: _text,
    tuple: _wholes,
    bool: _truth,
    Size: _size,
}
