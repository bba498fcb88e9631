"""What a metric is: one function from codes and factors to a result, and beside it what it needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from inspect import getdoc, signature
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np

from lddr.data.factors import FactorSpace
from lddr.errors import UserError
from lddr.metrics.samples import Draws, Sample
from lddr.metrics.signature import rules_of, with_settings
from lddr.registry import Registry
from lddr.settings import Rule

Samples = Mapping[str, Sample]  # by part
Tell = Callable[[float], None]  # told the share of a metric's work that has just been finished
QUICK = 10.0  # seconds


class UndefinedError(UserError):
    """A metric has no value here; the sentence says why."""


@dataclass(frozen=True)
class Result:
    """The headline number, and the settings behind it; a metric adds what else it found out."""

    score: float
    settings: dict[str, Any] = field(default_factory=dict, kw_only=True)
    bootstrap: dict[str, Any] | None = field(default=None, kw_only=True)  # intervals, where they were asked for

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file; matrices as lists of rows."""
        values = {entry.name: plain(getattr(self, entry.name)) for entry in fields(self)}
        return {name: value for name, value in values.items() if name != "bootstrap" or value is not None}


def plain(value: Any) -> Any:
    """As JSON would give it back: lists, numbers and words."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


@dataclass(frozen=True)
class Metric:
    """A function with its settings, the published ones unless `with_settings` changed some."""

    name: str
    title: str
    function: Callable[..., Result]
    settings: dict[str, Any]
    rules: dict[str, Rule]
    counts: Mapping[str, Any]  # part → how many images are published, or a function of the settings that tells
    drawn: Callable[..., Draws] | None
    inputs: Callable[[Samples], Sequence[Any]] | None
    fixed: dict[str, Any]  # arguments that are no settings
    is_task: bool
    seconds: float

    @property
    def is_quick(self) -> bool:
        """Whether it is done in seconds, encoding included."""
        return self.needs == "codes" and self.seconds <= QUICK

    @property
    def needs(self) -> Literal["codes", "interventions", "model"]:
        """What it is worked out from.

        "codes" of plain samples, so that arrays from anywhere will do; "interventions", images drawn with one factor
        held, for which the dataset is needed; or the "model" itself.
        """
        return "codes" if self.counts else "interventions" if self.drawn else "model"

    @property
    def labels(self) -> bool:
        """Whether ground-truth factors are needed."""
        return self.needs == "interventions" or any(name.startswith("factors") for name in self._parameters)

    @property
    def about(self) -> str:
        """What it is, in a sentence."""
        return (getdoc(self.function) or "").partition("\n")[0]

    @property
    def _parameters(self) -> list[str]:
        return list(signature(self.function).parameters)

    @property
    def parts(self) -> dict[str, int]:
        """How many images each plain sample of this metric has."""
        own = self.settings
        counts = {part: count(own) if callable(count) else own[part] for part, count in self.counts.items()}
        return {part: count for part, count in counts.items() if count}

    def with_settings(self, **changes: Any) -> "Metric":
        """The same with other settings; what is not one, or out of its range, is refused in a sentence."""
        for name in changes:
            if name not in self.rules:
                raise UserError(f"{self.name} has no setting {name!r}; it has: {', '.join(self.rules) or 'none'}")
        fitting = {name: self.rules[name].fitting(f"{self.name}.{name}", value) for name, value in changes.items()}
        return replace(self, settings=self.settings | fitting)

    def draw(self, space: FactorSpace, generator: np.random.Generator) -> Draws:
        """The images this metric looks at, as numbers; nothing is encoded yet."""
        if self.drawn is None:
            return {part: space.sample(generator, count) for part, count in self.parts.items()}
        return self.drawn(space, generator, **{name: self.settings[name] for name in rules_of(self.drawn)})

    def score(self, samples: Samples, told: Tell | None = None) -> Result:
        """The result, from the samples that were drawn."""
        if self.needs == "model":
            raise UndefinedError(f"{self.title} needs the model itself: use lddr evaluate RUN")
        return self(self.inputs(samples) if self.inputs else self._looked_up(samples), told)

    def _looked_up(self, samples: Samples) -> list[Any]:
        """The codes and factors that the function asks for by name; None for those of a part that was not drawn."""
        wanted = [name.partition("_") for name in self._parameters if name.startswith(("codes", "factors"))]
        return [getattr(samples.get(part or "samples"), kind, None) for kind, _, part in wanted]

    def __call__(self, inputs: Sequence[Any], told: Tell | None = None) -> Result:
        """The result of the function for these inputs with these settings; `told` hears of progress where it can."""
        given = self.settings | self.fixed | {"told": told}
        result = self.function(
            *inputs, **{name: given[name] for name in self._parameters[len(inputs) :] if name in given}
        )
        return replace(result, settings=self.settings | result.settings)


metrics: Registry[Metric] = Registry("metric", homes=("lddr.metrics",))

P = ParamSpec("P")
R = TypeVar("R", bound=Result)


def metric(
    name: str,
    title: str,
    *,
    parts: Mapping[str, Any] | None = None,
    draw: Callable[..., Draws] | None = None,
    inputs: Callable[[Samples], Sequence[Any]] | None = None,
    is_task: bool = False,
    seconds: float = 0.1,
    **fixed: Any,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: make a function known as a metric. Its inputs come first; its parameters with a default are settings.

    `parts` are the plain samples it needs: part → the published number of images, which is a setting, too. Its inputs
    are then called codes_PART and factors_PART; plain `codes` and `factors` are those of the part "samples".
    Instead, `draw(space, generator, …)` draws with factors held; its parameters with a default are settings, and
    `inputs(samples)` makes the inputs of what it drew. With neither, the inputs are `trained`, `dataset` and `seed`.
    `is_task` is for what is done with codes, which is no measure of disentanglement; `seconds` is how long it takes on
    one core with the published settings, roughly; `fixed` are arguments that are no settings.
    """

    def register(function: Callable[P, R]) -> Callable[P, R]:
        checked = function if hasattr(function, "__wrapped__") else with_settings(function)
        sizes = {part: count for part, count in (parts or {}).items() if not callable(count)}
        rules = {part: Rule(count, "", int, at_least=min(1, count)) for part, count in sizes.items()}
        rules |= (rules_of(draw) if draw else {}) | rules_of(checked)
        rules = {key: rule for key, rule in rules.items() if key not in fixed}
        published = {key: rule.default for key, rule in rules.items()}
        known = Metric(name, title, checked, published, rules, parts or {}, draw, inputs, fixed, is_task, seconds)
        metrics.register(name)(known)
        return checked

    return register
