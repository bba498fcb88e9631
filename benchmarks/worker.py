"""Processes of their own for the sides of a comparison; nothing is imported that another environment may not have."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import IO, Any, cast

ROOT = Path(__file__).parents[1]


def one_thread(path: str | None = None) -> dict[str, str]:
    """Return the environment of a new Python process with one thread, which imports what this one can, or from path."""
    if path is None:
        path = os.pathsep.join(filter(None, sys.path))  # benchmarks of a clone are not installed
    return os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path}


class Worker:
    """A new process that makes a function by calling "module:function" with strings, and repeats it on request.

    With the Python of another environment, the process imports the packages of that one, and benchmarks.
    """

    def __init__(self, function: str, *arguments: str, python: str | Path | None = None) -> None:
        module, name = function.split(":")
        code = f"import sys; from benchmarks.worker import serve; from {module} import {name}"
        command = [str(python or sys.executable), "-c", f"{code}; serve({name}, *sys.argv[1:])", *arguments]
        pipe, environment = subprocess.PIPE, one_thread(str(ROOT) if python else None)
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True)
        self._questions, self._answers = cast(IO[str], self._process.stdin), cast(IO[str], self._process.stdout)
        self.processor_seconds = 0.0  # of all repetitions so far

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

    def value(self) -> float:
        """Do it once, and return the number that it returned."""
        return float(self._ask(1)["value"])

    def peak_megabytes(self) -> float:
        return float(self._ask(0)["peak MB"])

    def _ask(self, times: int) -> dict[str, Any]:
        print(times, file=self._questions, flush=True)
        answer = self._answers.readline()
        if not answer:
            raise RuntimeError("a process of the benchmark ended early; its error is above")
        found = json.loads(answer)
        self.processor_seconds += found["seconds"]
        return found


def serve(prepare: Callable[..., Callable[[], object]], *arguments: str) -> None:
    """Serve a Worker: repeat as often as each line of stdin says, then print time, peak memory and the last number."""
    answers = sys.stdout
    with redirect_stdout(sys.stderr):  # what a library prints is no answer
        repeated = prepare(*arguments)
        for line in sys.stdin:
            start, value = time.process_time(), None
            for _ in range(int(line)):
                value = repeated()
            on_gpu = _gpu_megabytes()  # waits for the device
            answer = {"seconds": time.process_time() - start, "peak MB": peak_megabytes() if on_gpu is None else on_gpu}
            answer["value"] = value if isinstance(value, int | float) else None
            print(json.dumps(answer), file=answers, flush=True)


def _gpu_megabytes() -> float | None:
    """Return the peak GPU memory of this process once its work is done; None without CUDA."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
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
