"""Interleaved timing, so that a busy machine slows all sides alike; memory of processes; tables. Without torch."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import IO, Any, cast

from rich.console import Console
from rich.table import Table

from lddr.files import write_json


def interleaved(
    sides: dict[str, Callable[[], int]], repeats: int = 7, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Return the median seconds per unit of each side; a side does some work and returns how many units it did."""
    for run in sides.values():
        run()  # to fill caches
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, run in sides.items():
            start = clock()
            units = run()
            times[name].append((clock() - start) / units)
    return {name: median(values) for name, values in times.items()}


def fair_clock(threads: int) -> Callable[[], float]:
    """Return the processor time with one thread, so that other processes do not count, else the wall-clock time."""
    return time.process_time if threads == 1 else time.perf_counter


def one_thread() -> dict[str, str]:
    """Return the environment of a new Python process with one thread, which imports what this one can."""
    path = os.pathsep.join(filter(None, sys.path))  # benchmarks of a clone are not installed
    return os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path}


class Worker:
    """A new process that makes a function by calling "module:function" with strings, and repeats it on request."""

    def __init__(self, function: str, *arguments: str) -> None:
        module, name = function.split(":")
        imports = f"import sys; from lddr.timing import serve; from {module} import {name}"
        command = [sys.executable, "-c", f"{imports}; serve({name}(*sys.argv[1:]))", *arguments]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=one_thread(), text=True)
        self._questions, self._answers = cast(IO[str], self._process.stdin), cast(IO[str], self._process.stdout)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *problem: object) -> None:
        self._questions.close()
        self._answers.close()
        self._process.wait()

    def run(self, times: int) -> int:
        """Repeat it, and return how often."""
        self._ask(times)
        return times

    def peak_megabytes(self) -> float:
        return float(self._ask(0))

    def _ask(self, times: int) -> str:
        print(times, file=self._questions, flush=True)
        answer = self._answers.readline()
        if not answer:
            raise RuntimeError("a process of the benchmark ended early; its error is above")
        return answer


def serve(repeated: Callable[[], object]) -> None:
    """Serve a Worker: repeat as often as each line of stdin says, then print the peak memory."""
    for line in sys.stdin:
        for _ in range(int(line)):
            repeated()
        on_gpu = _gpu_megabytes()  # waits for the device
        print(peak_megabytes() if on_gpu is None else on_gpu, flush=True)


def _gpu_megabytes() -> float | None:
    """Return the peak GPU memory of this process once its work is done; None without CUDA."""
    import torch

    if torch.backends.mps.is_available():
        torch.mps.synchronize()
    if not torch.cuda.is_initialized():
        return None
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() / 1e6


def peak_megabytes() -> float:
    """Return the peak RAM of this process."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage inherits the peak of the process that started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def show(rows: list[dict[str, Any]], title: str, out: Path | None) -> None:
    """Print one line per row, words to the left and numbers to the right, and write the rows as JSON."""
    table = Table(box=None, header_style="bold", title=title)
    for heading, value in rows[0].items():
        is_word = isinstance(value, str)
        table.add_column(heading, justify="left" if is_word else "right", no_wrap=is_word)
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    Console(width=max(120, Console().width)).print(table)
    if out is not None:
        write_json(out, rows)


def _cell(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
