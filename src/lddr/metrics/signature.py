"""The settings of a function, from its signature: names, defaults, types, allowed values and ranges."""

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_args, get_origin

from lddr.settings import Rule

FEW = 1_000  # samples; published scores are of 10 000 and more

P = ParamSpec("P")
R = TypeVar("R")

# what a setting may be: the limits stand beside the type
Count = Annotated[int, {"at_least": 1}]
Seed = Annotated[int, {"at_least": 0, "at_most": 2**32 - 1}]
NotNegative = Annotated[float, {"at_least": 0}]
Positive = Annotated[float, {"above": 0}]
Share = Annotated[float, {"at_least": 0, "at_most": 1}]


class FewSamplesWarning(UserWarning):
    """A score is of so few samples that it says little."""


def of_few_samples(sizes: Mapping[str, Any]) -> str | None:
    """What to say of a score of so many samples, nothing where they are enough."""
    count = sizes.get("samples", sizes.get("train", FEW) + sizes.get("test", FEW))
    return f"from {count} samples; scores of fewer than {FEW} are biased and vary by chance" if count < FEW else None


def rules_of(function: Callable) -> dict[str, Rule]:
    """The settings of a function: its parameters with a default, but for None, which is something that may be missing.

    A range stands in the annotation, such as `Count`; the allowed words are those of a `Literal`.
    """
    known = inspect.signature(function).parameters.values()
    return {each.name: _rule(each) for each in known if each.default not in (None, each.empty)}


def _rule(parameter: inspect.Parameter) -> Rule:
    annotation, kind = parameter.annotation, type(parameter.default)
    choices = get_args(annotation) if get_origin(annotation) is Literal else ()
    limits = annotation.__metadata__[0] if get_origin(annotation) is Annotated else {}
    return Rule(parameter.default, "", kind, choices=choices, **limits)


def with_settings(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, which refuses settings out of their range in a sentence, and whose result has them all."""
    signature, rules, name = inspect.signature(function), rules_of(function), function.__name__

    @wraps(function)
    def called(*values: P.args, **named: P.kwargs) -> R:
        bound = signature.bind(*values, **named)
        bound.apply_defaults()
        settings = {key: rule.fitting(f"{name}: {key}", bound.arguments[key]) for key, rule in rules.items()}
        bound.arguments.update(settings)
        result: Any = function(*bound.args, **bound.kwargs)
        if few := of_few_samples(result.settings):
            warnings.warn(f"{name}: {few}", FewSamplesWarning, stacklevel=2)
        return replace(result, settings=settings | result.settings)

    return called
