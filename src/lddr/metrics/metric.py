"""The definition of a metric: a function from codes and factors to a result, its settings, and the images it needs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from lddr.data.factors import FactorSpace, Indices
from lddr.errors import UserError
from lddr.metrics.information import Floats, Whole
from lddr.registry import Registry
from lddr.settings import LIMITS, Rule, Setting

# types of settings, with their limits
Count = Annotated[int, {"at_least": 1}]
Seed = Annotated[int, {"at_least": 0, "at_most": 2**32 - 1}]
NotNegative = Annotated[float, {"at_least": 0}]
Positive = Annotated[float, {"above": 0}]
Share = Annotated[float, {"at_least": 0, "at_most": 1}]

Draws = dict[str, Indices]  # part → image indices, of any shape
Progress = Callable[[float], None]  # called with the share of a metric's work that has just been finished
MetricSettings = Mapping[str, Mapping[str, Any]]  # metric → setting → value
Names = str | Iterable[str] | None  # "quick", "all", comma-separated names, or a list; None is quick

DIRECT = 20_000_000  # up to this many images, a table indexed by image is small enough to be preferred over searching
FEW_SAMPLES = 1_000  # published scores use 10,000 and more
QUICK_SECONDS = 10.0
SIX_METRICS = ("beta_vae", "factor_vae", "mig", "dci", "modularity", "sap")  # the paper's six, in its order


class UndefinedError(UserError):
    """A metric is undefined here; the message says why."""


class FewSamplesWarning(UserWarning):
    """A score is based on too few samples to be meaningful."""


def few_samples_warning(sizes: Mapping[str, Any]) -> str | None:
    """Return the caveat for a score from this many samples; None if they are enough."""
    count = sizes.get("samples", sizes.get("train", FEW_SAMPLES) + sizes.get("test", FEW_SAMPLES))
    if count >= FEW_SAMPLES:
        return None
    return f"from {count} samples; scores of fewer than {FEW_SAMPLES} are biased and noisy"


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

    def samples(self, draws: Draws) -> dict[str, SampleSet]:
        """Return the samples of a metric, by part."""
        return {part: SampleSet(indices, self) for part, indices in draws.items()}


@dataclass(frozen=True)
class SampleSet:
    """Sampled images by index: codes and factors are looked up on access, so that each part costs only its own size."""

    indices: Indices  # (…)
    table: EncodedImages

    def __getitem__(self, rows: Any) -> SampleSet:
        return SampleSet(self.indices[rows], self.table)

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


Samples = Mapping[str, SampleSet]  # by part


@dataclass(frozen=True)
class Result:
    """The result of a metric; metrics add further attributes.

    Attributes
    ----------
    score : float
        The headline number.
    settings : dict
        Every setting that the score depends on.
    bootstrap : dict or None
        The intervals of `lddr.evaluate(…, bootstrap=200)`.
    """

    score: float
    settings: dict[str, Any] = field(default_factory=dict, kw_only=True)
    bootstrap: dict[str, Any] | None = field(default=None, kw_only=True)

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
    """A registered metric with its settings, which are the published ones unless `with_settings` changed some.

    `needs` is the input that it is computed from: "codes" of plain samples, so that arrays from any source will do;
    "interventions", images sampled with one factor fixed, for which the dataset is needed; or the "model" itself.
    `labels` says whether it needs ground-truth factors.
    """

    name: str
    title: str
    function: Callable[..., Result]
    needs: Literal["codes", "interventions", "model"]
    labels: bool
    rules: dict[str, Rule]
    settings: dict[str, Any]
    sizes: Mapping[str, Any]  # part → the published number of images, or a function of the settings that returns it
    drawn: Callable[..., Draws] | None
    inputs: Callable[[Samples], Sequence[Any]]
    fixed: dict[str, Any]  # arguments that are not settings
    is_task: bool
    seconds: float

    @property
    def is_quick(self) -> bool:
        """Whether it takes seconds, encoding included."""
        return self.needs == "codes" and self.seconds <= QUICK_SECONDS

    @property
    def parts(self) -> dict[str, int]:
        """The number of images of each plain sample of this metric."""
        sizes = {
            part: size(self.settings) if callable(size) else self.settings[part] for part, size in self.sizes.items()
        }
        return {part: size for part, size in sizes.items() if size}

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
        return self.drawn(space, generator, **{name: self.settings[name] for name in metric_rules(self.drawn)})

    def score(self, samples: Samples, progress: Progress | None = None) -> Result:
        """Compute the result from the sampled images."""
        if self.needs == "model":
            raise UndefinedError(f"{self.title} needs the model itself: use lddr evaluate RUN")
        return self.compute(self.inputs(samples), progress)

    def compute(self, inputs: Sequence[Any], progress: Progress | None = None) -> Result:
        """Call the function with these inputs and the settings, which are known to be in range."""
        given = self.settings | self.fixed | {"progress": progress}
        names = list(inspect.signature(self.function).parameters)[len(inputs) :]
        result = inspect.unwrap(self.function)(*inputs, **{name: given[name] for name in names if name in given})
        if not isinstance(result, Result):
            raise UserError(f"the metric {self.name!r} must return a Result, not {result!r}: return Result(score)")
        return replace(result, settings=self.fixed | self.settings | result.settings)


metrics: Registry[Metric] = Registry("metric", homes=("lddr.metrics",))

P = ParamSpec("P")
R = TypeVar("R", bound=Result)
T = TypeVar("T")


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
    """Register the decorated function as a metric. Its inputs come first; parameters with a default are settings.

    Parameters
    ----------
    name, title : str
        The name on the command line, and the title in tables and figures.
    parts : mapping, optional
        The plain samples that it needs: part → the published number of images, which is a setting, too. The inputs
        are then called `codes_PART` and `factors_PART`; plain `codes` and `factors` are those of the part "samples".
    draw, inputs : callable, optional
        Instead of `parts`: `draw(space, generator, …)` samples images with fixed factors (its parameters with a default
        are settings), and `inputs(samples)` makes the function's inputs from their codes. With neither `parts` nor
        `draw`, the inputs are `trained`, `dataset` and `seed`.
    is_task : bool
        Whether it is a downstream task, which does not measure disentanglement.
    seconds : float
        Roughly how long it takes on one core with the published settings.
    **fixed
        Arguments of the function that are not settings.

    Returns
    -------
    callable
        The decorator. A decorated function checks its settings and adds them to its result.

    See docs/adding-a-part.md for an example.
    """

    def register(function: Callable[P, R]) -> Callable[P, R]:
        public = function if hasattr(function, "__wrapped__") else _with_settings(function)
        names = [each.partition("_") for each in inspect.signature(function).parameters]
        wanted = [(kind, part or "samples") for kind, _, part in names if kind in ("codes", "factors")]

        if parts and inputs is None:
            _check_inputs(name, function, wanted, parts)

        def codes_and_factors(samples: Samples) -> list[Any]:
            return [getattr(samples.get(part), kind, None) for kind, part in wanted]

        sizes = {part: size for part, size in (parts or {}).items() if not callable(size)}
        rules = {part: Rule(size, "", int, at_least=min(1, size)) for part, size in sizes.items()}
        rules |= (metric_rules(draw) if draw else {}) | metric_rules(public)
        rules = {key: rule for key, rule in rules.items() if key not in fixed}
        metrics.register(name)(
            Metric(
                name,
                title,
                public,
                needs="codes" if parts else "interventions" if draw else "model",
                labels=draw is not None or any(kind == "factors" for kind, _ in wanted),
                rules=rules,
                settings={key: rule.default for key, rule in rules.items()},
                sizes=parts or {},
                drawn=draw,
                inputs=inputs or codes_and_factors,
                fixed=fixed,
                is_task=is_task,
                seconds=seconds,
            )
        )
        return public

    return register


def _with_settings(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a metric for direct calls: it refuses settings out of range, and its result contains all settings."""
    signature, rules, name = inspect.signature(function), metric_rules(function), function.__name__

    @wraps(function)
    def checked(*values: P.args, **named: P.kwargs) -> R:
        bound = signature.bind(*values, **named)
        bound.apply_defaults()
        settings = {key: rule.fitting(f"{name}: {key}", bound.arguments[key]) for key, rule in rules.items()}
        bound.arguments.update(settings)
        result = function(*bound.args, **bound.kwargs)
        if few := few_samples_warning(result.settings):
            warnings.warn(f"{name}: {few}", FewSamplesWarning, stacklevel=2)
        return replace(result, settings=settings | result.settings)

    return checked


def _check_inputs(name: str, function: Callable, wanted: Sequence[tuple[str, str]], parts: Mapping[str, Any]) -> None:
    """Raise UserError if the parameters of a metric are not named after the codes and factors of its parts."""
    required = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    if len(required) > len(wanted) or not {part for _, part in wanted} <= parts.keys():
        names = ", ".join(f"{kind}_{part}" for part in parts for kind in ("codes", "factors"))
        found = ", ".join(each.name for each in required)
        raise UserError(
            f"the metric {name!r} has the inputs {found}; name them codes, factors or after its parts: {names}"
        )


def metric_rules(function: Callable) -> dict[str, Rule]:
    """Return the settings of a function: its parameters with a default other than None, which marks an optional input.

    The annotation gives the range, with `Count` or a `Setting`, or the choices, with a `Literal`. A whole number
    without a range is at least 1, unless its default is smaller.
    """
    rules = {}
    for each in inspect.signature(function).parameters.values():
        if each.default not in (None, each.empty):
            kind = get_origin(each.annotation)
            choices = get_args(each.annotation) if kind is Literal else ()
            limits = {"at_least": min(1, each.default)} if type(each.default) is int else {}
            if kind is Annotated:
                limits = each.annotation.__metadata__[0]
                limits = {name: getattr(limits, name) for name in LIMITS} if isinstance(limits, Setting) else limits
            rules[each.name] = Rule(each.default, "", type(each.default), choices=choices, **limits)
    return rules


def choose_metrics(names: Names = None, settings: MetricSettings | None = None) -> dict[str, Metric]:
    """Return the selected metrics, with changed settings; "quick" also includes metrics whose settings are given."""
    changes = settings or {}
    if names is None or names == "quick":
        wanted = [name for name in metrics if metrics[name].is_quick or name in changes]
    elif names == "all":
        wanted = list(metrics)
    else:
        given = names.split(",") if isinstance(names, str) else names
        wanted = list(dict.fromkeys(name.strip() for name in given if name.strip()))
        if isinstance(names, str) and not wanted:  # a study may have no scores
            raise UserError(f"no metric is named; say quick, all or some of: {', '.join(metrics)}")
    for name in changes:
        if name not in wanted:
            raise UserError(f"settings for {name}, which is not among the metrics: {', '.join(wanted)}")
    return {name: metrics[name].with_settings(**changes.get(name, {})) for name in wanted}


def disentanglement_metrics() -> list[str]:
    """Return the metrics that compare codes with factors: the paper's six, then all others."""
    others = [name for name in metrics if metrics[name].labels and not metrics[name].is_task]
    return list(dict.fromkeys([*SIX_METRICS, *others]))


def parse_metric_settings(changes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Parse METRIC.SETTING=VALUE into nested dictionaries, with each value in the type of its setting."""
    settings: dict[str, dict[str, Any]] = {}
    for change in changes:
        where, equals, value = change.partition("=")
        name, dot, setting = where.partition(".")
        if not equals or not dot:
            raise UserError(f"expected METRIC.SETTING=VALUE, such as dci.estimator=fast, not {change!r}")
        settings.setdefault(name, {})[setting] = metrics[name].with_settings(**{setting: value}).settings[setting]
    return settings


def metric_descriptions() -> list[tuple[str, str, str, str]]:
    """Return name, needs, description and published settings of every metric."""
    rows = []
    for name in metrics:
        metric = metrics[name]
        codes = "codes and factors" if metric.labels else "codes"
        needs = {"codes": codes, "interventions": "the dataset", "model": "the model"}[metric.needs]
        about = (inspect.getdoc(metric.function) or "").partition("\n")[0]
        values = {
            key: "/".join(map(str, value)) or "none" if isinstance(value, tuple) else value
            for key, value in metric.settings.items()
        }
        rows.append(
            (name, needs, f"{metric.title}: {about}", ", ".join(f"{key} {value}" for key, value in values.items()))
        )
    return rows


def reporting(items: Iterable[T], shares: Sequence[float], progress: Progress | None) -> Iterator[T]:
    """Iterate over items; `progress` is called with the share of each one when it is finished."""
    for item, share in zip(items, shares, strict=True):
        yield item
        if progress is not None:
            progress(share)


def parallel_jobs(jobs: int) -> AbstractContextManager:
    """Let fits run on this many cores (-1: all)."""
    from joblib import parallel_config

    if jobs != -1 and jobs < 1:
        raise UserError(f"jobs must be at least 1, or -1 for all cores, not {jobs}")
    return nullcontext() if jobs == 1 else parallel_config(n_jobs=jobs)
