"""Independent fits side by side: on as many cores as `joblib.parallel_config` allows, one when nothing is said."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
Tick = Callable[[float], None]  # told the share of a metric's work that has just been finished

_tick: ContextVar[Tick | None] = ContextVar("tick", default=None)


def tick(share: float) -> None:
    """Tell whoever watches that this share of a metric's work is done."""
    told = _tick.get()
    if told is not None:
        told(share)


def side_by_side(
    fit: Callable[..., T], tasks: Iterable[Sequence[Any]], costs: Sequence[float] | None = None
) -> list[T]:
    """`fit(*task)` for every task, in order; `costs` are the shares of the tasks in the work, for the bar."""
    from joblib import Parallel, delayed

    listed = list(tasks)
    shares = [1.0] * len(listed) if costs is None else list(costs)
    total, results = sum(shares) or 1.0, []
    fits = Parallel(return_as="generator")(delayed(_on_one_thread)(fit, *task) for task in listed)
    for result, share in zip(fits, shares, strict=True):
        results.append(result)
        tick(share / total)
    return results


def _on_one_thread(fit: Callable[..., T], *task: Any) -> T:
    """The fit with one thread inside: the last digits of its sums would depend on the number of threads."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return fit(*task)


@contextmanager
def watched(told: Tick) -> Iterator[None]:
    """Have `told` called after every piece of work in this block."""
    token = _tick.set(told)
    try:
        yield
    finally:
        _tick.reset(token)
