"""Some of many runs: conditions such as "model=dvae" and "seed<5" on their settings."""

from collections.abc import Iterable, Sequence

from lddr.conditions import as_number, parse_condition
from lddr.config import Config
from lddr.errors import UserError, unknown


def narrowed(configs: Sequence[Config], conditions: Iterable[str]) -> tuple[Config, ...]:
    """The runs that meet every condition; a run without the setting meets none on it."""
    left = tuple(configs)
    for condition in conditions:
        left = _meeting(left, condition)
    return left


def _meeting(configs: tuple[Config, ...], condition: str) -> tuple[Config, ...]:
    asked = parse_condition(condition)
    name = asked.name
    values = [config.flat().get(name) for config in configs]
    there = {value for value in values if value is not None}
    if not there:
        names = {each for config in configs for each in config.flat()}
        reason = f"no run has a {name} of its own" if name in names else unknown("setting", name, names)
        raise UserError(f"{condition}: {reason}")
    words = [value for value in (*values, asked.wanted) if value is not None and as_number(value) is None]
    if asked.is_order and words:
        raise UserError(f"{condition}: {words[0]!r} is no number; compare it with = or !=")
    kept = tuple(
        config for config, value in zip(configs, values, strict=True) if value is not None and asked.holds(value)
    )
    if not kept:
        shown = ", ".join(map(str, sorted(there, key=lambda value: (isinstance(value, str), value))[:10]))
        raise UserError(f"no run is left by {condition}; {name} has the values {shown}{', …' * (len(there) > 10)}")
    return kept
