"""What outlives a sweep that was killed: helpers of Ray notice it only after a minute; a process of ours ends them."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

EVERY = 0.5  # seconds between two looks
GRACE = 2.0  # seconds for Ray to end itself


@contextmanager
def watched_over() -> Iterator[None]:
    """While this lasts, a process stands by that ends the Ray below us should we be killed."""
    command = [sys.executable, "-m", __name__, str(os.getpid())]
    watcher = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        watcher.kill()
        watcher.wait()


def watch(pid: int) -> None:
    """Remember Ray's processes below another one while it lives, and end those that are left soon after it."""
    known: dict[psutil.Process, bool] = {}  # whether it is Ray's
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        while parent.is_running() and parent.status() != psutil.STATUS_ZOMBIE:
            for process in parent.children(recursive=True):
                known[process] = known.get(process, False) or _is_rays(process)
            time.sleep(EVERY)
    _, left = psutil.wait_procs([process for process, is_rays in known.items() if is_rays], timeout=GRACE)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _is_rays(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return any(word.startswith("ray::") or f"{os.sep}ray{os.sep}" in word for word in process.cmdline())
    return False


if __name__ == "__main__":
    watch(int(sys.argv[1]))
