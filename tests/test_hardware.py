import ctypes
import subprocess
import sys

import pytest

AFTERWARDS = """
import ctypes
import lddr
from lddr.cli import main

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
class Blocks(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usm fsm uord ford keep".split()]
libc.mallinfo2.restype = Blocks

def gives_back():
    '''Whether a large block is mapped of its own, and so given back to the system when it is freed.'''
    before = libc.mallinfo2().hblks
    block = libc.malloc(100 << 20)
    mapped = libc.mallinfo2().hblks - before
    libc.free(block)
    return mapped == 1

small = {"preset": "quick", "resolution": 16, "width": 4, "steps": 3}
lddr.train("circles", "vae", machine=lddr.Machine("cpu", 1, quiet=True), **small)
in_a_library = gives_back()
words = [word for name, value in small.items() for word in (f"--{name}", str(value))]
main(["train", "--dataset", "circles", "--device", "cpu", "--quiet", "--out", "runs", *words])
print(in_a_library, gives_back())
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33")
def test_memory_is_kept_by_commands_and_not_by_a_call_of_the_library(tmp_path):
    command = [sys.executable, "-c", AFTERWARDS]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert run.stdout.splitlines()[-1] == "True False"
