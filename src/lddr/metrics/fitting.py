"""Independent fits side by side: on as many cores as `joblib.parallel_config` allows, one when nothing is said."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
Tick = Callable[[float], None]  # told the share of a metric's fits that has just been finished

_tick: ContextVar[Tick | None] = ContextVar("tick", default=None)


def side_by_side(
    fit: Callable[..., T], tasks: Iterable[Sequence[Any]], costs: Sequence[float] | None = None
) -> list[T]:
    """`fit(*task)` for every task, in order; `costs` are the shares of the tasks in the work, for the bar."""
    from joblib import Parallel, delayed

    listed = list(tasks)
    shares = [1.0] * len(listed) if costs is None else list(costs)
    tick, total, results = _tick.get(), sum(shares) or 1.0, []
    for result, share in zip(
        Parallel(return_as="generator")(delayed(fit)(*task) for task in listed), shares, strict=True
    ):
        results.append(result)
        if tick is not None:
            tick(share / total)
    return results


@contextmanager
def watched(tick: Tick) -> Iterator[None]:
    """Have `tick` called after every fit in this block."""
    token = _tick.set(tick)
    try:
        yield
    finally:
        _tick.reset(token)
