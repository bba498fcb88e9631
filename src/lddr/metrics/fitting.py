"""Independent fits side by side: on as many cores as `joblib.parallel_config` allows, one when nothing is said."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from lddr.errors import UserError
from lddr.metrics.metric import Tell

T = TypeVar("T")


def cores(jobs: int) -> AbstractContextManager:
    """Let fits run on this many cores, all for -1."""
    from joblib import parallel_config

    check_jobs(jobs)
    return nullcontext() if jobs == 1 else parallel_config(n_jobs=jobs)


def check_jobs(jobs: int) -> None:
    if jobs != -1 and jobs < 1:
        raise UserError(f"jobs must be at least 1, or -1 for all cores, not {jobs}")


def side_by_side(
    fit: Callable[..., T], tasks: Iterable[Sequence[Any]], costs: Sequence[float], told: Tell | None = None
) -> list[T]:
    """`fit(*task)` for every task, in order; `told` hears the share of each in the `costs` when it is done."""
    from joblib import Parallel, delayed

    results, total = [], sum(costs) or 1.0
    fits = Parallel(return_as="generator")(delayed(_on_one_thread)(fit, *task) for task in tasks)
    for result, cost in zip(fits, costs, strict=True):
        results.append(result)
        if told is not None:
            told(cost / total)
    return results


def _on_one_thread(fit: Callable[..., T], *task: Any) -> T:
    """The fit with one thread inside: the last digits of its sums would depend on the number of threads."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return fit(*task)
