import subprocess
import sys

import psutil

SLEEP = "[sys.executable, '-c', 'import time; time.sleep(600)', {!r}]"
PARENT = f"""
import subprocess, sys, time
from lddr.sweeps.cluster import watched_over
with watched_over():
    children = [subprocess.Popen(words) for words in ({SLEEP.format("/x/ray/y")}, {SLEEP.format("/x/array/y")})]
    print(*(child.pid for child in children), flush=True)
    time.sleep(3)
    print("seen", flush=True)
    time.sleep(600)
"""


def test_the_ray_of_a_killed_sweep_ends_and_nothing_else():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    rays, others = (psutil.Process(int(pid)) for pid in parent.stdout.readline().split())
    try:
        assert parent.stdout.readline() == "seen\n"
        parent.kill()
        parent.wait()
        rays.wait(timeout=60)
        assert others.is_running()
    finally:
        others.kill()
        parent.stdout.close()


def test_who_ends_by_himself_leaves_no_watcher():
    code = "import psutil\nfrom lddr.sweeps.cluster import watched_over\n"
    code += "with watched_over():\n    print(len(psutil.Process().children()))\nprint(len(psutil.Process().children()))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["1", "0"]
