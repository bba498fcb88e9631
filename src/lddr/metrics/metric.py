"""The definition of a metric: a function from codes and factors to a result, its settings, and the images it needs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from inspect import getdoc, signature
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from lddr.data.factors import FactorSpace, Indices
from lddr.errors import UserError
from lddr.metrics.information import Floats, Whole
from lddr.registry import Registry
from lddr.settings import Rule

Draws = dict[str, Indices]  # part → image indices, of any shape

DIRECT = 20_000_000  # up to this many images, a table indexed by image is small enough to be preferred over searching


class EncodedImages:
    """The codes of some images of a factor space, by image index."""

    def __init__(self, space: FactorSpace, images: Indices, codes: NDArray[np.floating]) -> None:
        self.space, self._images, self._codes = space, images, codes
        self._rows: NDArray[np.int32] | None = None
        if space.size <= DIRECT:
            self._rows = np.full(space.size, -1, np.int32)
            self._rows[images] = np.arange(len(images), dtype=np.int32)

    def codes_of(self, indices: Indices) -> Floats:
        """(…) → (…, latents)."""
        rows = np.searchsorted(self._images, indices) if self._rows is None else self._rows[indices]
        return self._codes[rows].astype(np.float64)

    def samples(self, draws: Draws) -> dict[str, Sample]:
        """Return the samples of a metric, by part."""
        return {part: Sample(numbers, self) for part, numbers in draws.items()}


@dataclass(frozen=True)
class Sample:
    """Sampled images by index: codes and factors are looked up on access, so that each part costs only its own size."""

    indices: Indices  # (…)
    table: EncodedImages

    def __getitem__(self, part: Any) -> Sample:
        return Sample(self.indices[part], self.table)

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def codes(self) -> Floats:
        """(…, latents)."""
        return self.table.codes_of(self.indices)

    @property
    def factors(self) -> Whole:
        """(…, factors)."""
        return self.table.space.factors_of(self.indices)


FEW = 1_000  # samples; published scores use 10,000 and more

_P = ParamSpec("_P")
_R = TypeVar("_R")

# types of settings, with their limits
Count = Annotated[int, {"at_least": 1}]
Seed = Annotated[int, {"at_least": 0, "at_most": 2**32 - 1}]
NotNegative = Annotated[float, {"at_least": 0}]
Positive = Annotated[float, {"above": 0}]
Share = Annotated[float, {"at_least": 0, "at_most": 1}]


class FewSamplesWarning(UserWarning):
    """A score is based on too few samples to be meaningful."""


def of_few_samples(sizes: Mapping[str, Any]) -> str | None:
    """Return the caveat for a score from this many samples; None if they are enough."""
    count = sizes.get("samples", sizes.get("train", FEW) + sizes.get("test", FEW))
    return f"from {count} samples; scores of fewer than {FEW} are biased and vary by chance" if count < FEW else None


def rules_of(function: Callable) -> dict[str, Rule]:
    """Return the settings of a function: its parameters with a default other than None, which marks an optional input.

    The annotation gives the range, such as `Count`, or the choices, with a `Literal`.
    """
    known = inspect.signature(function).parameters.values()
    return {each.name: _rule(each) for each in known if each.default not in (None, each.empty)}


def _rule(parameter: inspect.Parameter) -> Rule:
    annotation, kind = parameter.annotation, type(parameter.default)
    choices = get_args(annotation) if get_origin(annotation) is Literal else ()
    limits = annotation.__metadata__[0] if get_origin(annotation) is Annotated else {}
    return Rule(parameter.default, "", kind, choices=choices, **limits)


def with_settings(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Wrap a function so that it refuses settings out of range, and so that its result contains all settings."""
    signature, rules, name = inspect.signature(function), rules_of(function), function.__name__

    @wraps(function)
    def called(*values: _P.args, **named: _P.kwargs) -> _R:
        bound = signature.bind(*values, **named)
        bound.apply_defaults()
        settings = {key: rule.fitting(f"{name}: {key}", bound.arguments[key]) for key, rule in rules.items()}
        bound.arguments.update(settings)
        result: Any = function(*bound.args, **bound.kwargs)
        if few := of_few_samples(result.settings):
            warnings.warn(f"{name}: {few}", FewSamplesWarning, stacklevel=2)
        return replace(result, settings=settings | result.settings)

    return called


T = TypeVar("T")


def cores(jobs: int) -> AbstractContextManager:
    """Let fits run on this many cores (-1: all)."""
    from joblib import parallel_config

    check_jobs(jobs)
    return nullcontext() if jobs == 1 else parallel_config(n_jobs=jobs)


def check_jobs(jobs: int) -> None:
    if jobs != -1 and jobs < 1:
        raise UserError(f"jobs must be at least 1, or -1 for all cores, not {jobs}")


def side_by_side(
    fit: Callable[..., T], tasks: Iterable[Sequence[Any]], costs: Sequence[float], told: Tell | None = None
) -> list[T]:
    """Return `fit(*task)` for every task, in order; `told` is called with each finished task's share of the `costs`."""
    from joblib import Parallel, delayed

    results, total = [], sum(costs) or 1.0
    fits = Parallel(return_as="generator")(delayed(_on_one_thread)(fit, *task) for task in tasks)
    for result, cost in zip(fits, costs, strict=True):
        results.append(result)
        if told is not None:
            told(cost / total)
    return results


def _on_one_thread(fit: Callable[..., T], *task: Any) -> T:
    """Fit with one thread: otherwise, the last digits of sums would depend on the number of threads."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return fit(*task)


Samples = Mapping[str, Sample]  # by part
Tell = Callable[[float], None]  # called with the share of a metric's work that has just been finished
QUICK = 10.0  # seconds


class UndefinedError(UserError):
    """A metric is undefined here; the message says why."""


@dataclass(frozen=True)
class Result:
    """The headline score and its settings; metrics add further results."""

    score: float
    settings: dict[str, Any] = field(default_factory=dict, kw_only=True)
    bootstrap: dict[str, Any] | None = field(default=None, kw_only=True)  # intervals, if requested

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for a file; matrices become lists of rows."""
        values = {entry.name: plain(getattr(self, entry.name)) for entry in fields(self)}
        return {name: value for name, value in values.items() if name != "bootstrap" or value is not None}


def plain(value: Any) -> Any:
    """Convert to what JSON would give back: lists, numbers and strings."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


@dataclass(frozen=True)
class Metric:
    """A function with its settings, which are the published ones unless `with_settings` changed some."""

    name: str
    title: str
    function: Callable[..., Result]
    settings: dict[str, Any]
    rules: dict[str, Rule]
    counts: Mapping[str, Any]  # part → the published number of images, or a function of the settings that returns it
    drawn: Callable[..., Draws] | None
    inputs: Callable[[Samples], Sequence[Any]] | None
    fixed: dict[str, Any]  # arguments that are not settings
    is_task: bool
    seconds: float

    @property
    def is_quick(self) -> bool:
        """Whether it takes seconds, encoding included."""
        return self.needs == "codes" and self.seconds <= QUICK

    @property
    def needs(self) -> Literal["codes", "interventions", "model"]:
        """The input that it is computed from.

        "codes" of plain samples, so that arrays from any source will do; "interventions", images sampled with one
        factor fixed, for which the dataset is needed; or the "model" itself.
        """
        return "codes" if self.counts else "interventions" if self.drawn else "model"

    @property
    def labels(self) -> bool:
        """Whether it needs ground-truth factors."""
        return self.needs == "interventions" or any(name.startswith("factors") for name in self._parameters)

    @property
    def about(self) -> str:
        """A description in one sentence."""
        return (getdoc(self.function) or "").partition("\n")[0]

    @property
    def _parameters(self) -> list[str]:
        return list(signature(self.function).parameters)

    @property
    def parts(self) -> dict[str, int]:
        """The number of images of each plain sample of this metric."""
        own = self.settings
        counts = {part: count(own) if callable(count) else own[part] for part, count in self.counts.items()}
        return {part: count for part, count in counts.items() if count}

    def with_settings(self, **changes: Any) -> Metric:
        """Return a copy with other settings; unknown settings and values out of range are refused."""
        for name in changes:
            if name not in self.rules:
                raise UserError(f"{self.name} has no setting {name!r}; it has: {', '.join(self.rules) or 'none'}")
        fitting = {name: self.rules[name].fitting(f"{self.name}.{name}", value) for name, value in changes.items()}
        return replace(self, settings=self.settings | fitting)

    def draw(self, space: FactorSpace, generator: np.random.Generator) -> Draws:
        """Sample the images of this metric, as indices; nothing is encoded yet."""
        if self.drawn is None:
            return {part: space.sample(generator, count) for part, count in self.parts.items()}
        return self.drawn(space, generator, **{name: self.settings[name] for name in rules_of(self.drawn)})

    def score(self, samples: Samples, told: Tell | None = None) -> Result:
        """Compute the result from the sampled images."""
        if self.needs == "model":
            raise UndefinedError(f"{self.title} needs the model itself: use lddr evaluate RUN")
        return self(self.inputs(samples) if self.inputs else self._looked_up(samples), told)

    def _looked_up(self, samples: Samples) -> list[Any]:
        """Return the codes and factors that are parameters of the function; None for a part without samples."""
        wanted = [name.partition("_") for name in self._parameters if name.startswith(("codes", "factors"))]
        return [getattr(samples.get(part or "samples"), kind, None) for kind, _, part in wanted]

    def __call__(self, inputs: Sequence[Any], told: Tell | None = None) -> Result:
        """Call the function with these inputs and settings; `told` receives the progress if that is supported."""
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
    """Register the decorated function as a metric. Inputs come first; parameters with a default are settings.

    `parts` are the plain samples it needs: part → the published number of images, which is a setting, too. Its inputs
    are then named codes_PART and factors_PART; plain `codes` and `factors` are those of the part "samples".
    Alternatively, `draw(space, generator, …)` samples with fixed factors; its parameters with a default are settings,
    and `inputs(samples)` makes the inputs from its samples. With neither, the inputs are `trained`, `dataset` and
    `seed`.
    `is_task` marks downstream tasks, which do not measure disentanglement; `seconds` is roughly how long it takes on
    one core with the published settings; `fixed` are arguments that are not settings.
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


SIX_METRICS = ("beta_vae", "factor_vae", "mig", "dci", "modularity", "sap")  # the paper's six, in its order

Chosen = Mapping[str, Metric]
MetricSettings = Mapping[str, Mapping[str, Any]]  # metric → setting → value
Names = str | Iterable[str] | None  # "quick", "all", comma-separated names, or a list; None is quick


def configured(names: Names = None, settings: MetricSettings | None = None) -> dict[str, Metric]:
    """Return the selected metrics, with changed settings; "quick" also includes metrics whose settings are given."""
    changes = settings or {}
    wanted = named(names)
    if names is None or names == "quick":
        wanted = [name for name in metrics if name in wanted or name in changes]
    strangers = [name for name in changes if name not in wanted]
    if strangers:
        raise UserError(f"settings for {strangers[0]}, which is not among the metrics: {', '.join(wanted)}")
    return {name: metrics[name].with_settings(**changes.get(name, {})) for name in wanted}


def measures() -> list[str]:
    """Return the metrics that compare codes with factors: the paper's six, then all others."""
    others = [name for name in metrics if metrics[name].labels and not metrics[name].is_task]
    return list(dict.fromkeys([*SIX_METRICS, *others]))


def named(names: Names) -> list[str]:
    """Return the selected names of metrics."""
    if names is None or names == "quick":
        return [name for name in metrics if metrics[name].is_quick]
    if names == "all":
        return list(metrics)
    given = names.split(",") if isinstance(names, str) else names
    wanted = [name.strip() for name in given if name.strip()]
    if isinstance(names, str) and not wanted:  # a study may have no scores
        raise UserError(f"no metric is named; say quick, all or some of: {', '.join(metrics)}")
    return list(dict.fromkeys(wanted))


def parsed(changes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Parse METRIC.SETTING=VALUE into nested dictionaries, with each value in the type of its setting."""
    settings: dict[str, dict[str, Any]] = {}
    for change in changes:
        where, equals, value = change.partition("=")
        name, dot, setting = where.partition(".")
        if not equals or not dot:
            raise UserError(f"expected METRIC.SETTING=VALUE, such as dci.estimator=fast, not {change!r}")
        given = value.split(",") if isinstance(metrics[name].settings.get(setting), tuple) else value
        settings.setdefault(name, {})[setting] = metrics[name].with_settings(**{setting: given}).settings[setting]
    return settings


def described() -> list[tuple[str, str, str, str]]:
    """Return name, needs, description and published settings of every metric."""
    rows = []
    for name in metrics:
        metric = metrics[name]
        needs = {"codes": "codes and factors" if metric.labels else "codes", "interventions": "the dataset"}
        settings = ", ".join(f"{key} {in_words(value)}" for key, value in metric.settings.items())
        rows.append((name, needs.get(metric.needs, "the model"), f"{metric.title}: {metric.about}", settings))
    return rows


def in_words(value: Any) -> str:
    return "/".join(map(str, value)) if isinstance(value, tuple) else str(value)


def markdown_table() -> str:
    """Return the table of docs/metrics.md."""
    rows = [("name", "needs", "what it is", "settings"), ("---",) * 4]
    rows += [(f"`{name}`", needs, about.replace("|", "\\|"), settings) for name, needs, about, settings in described()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
