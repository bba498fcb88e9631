"""The long run: `python -m tests.fuzz --cases 10000 [--reader NAME]`; `--replay FOLDER` reads a failing case again."""

import argparse
import sys
import time
from pathlib import Path

from tests.fuzz.readers import READERS
from tests.fuzz.runner import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=60, help="per reader")
    parser.add_argument("--reader", action="append", choices=sorted(READERS), help="only this one; may be repeated")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--failures", type=Path, default=Path("fuzz-failures"), help="where failing cases are written")
    parser.add_argument("--replay", type=Path, help="a folder of a failing case")
    options = parser.parse_args()
    if options.replay is not None:
        print(READERS[options.replay.name.rpartition("-")[0]].read(options.replay))
        return 0
    bad = 0
    print(f"{'reader':18}{'cases':>8}{'read':>8}{'refused':>9}{'bad':>6}{'seconds':>9}")
    for name in options.reader or READERS:
        begun = time.monotonic()
        found = run(READERS[name], options.cases, options.seed, options.failures)
        taken = time.monotonic() - begun
        print(f"{name:18}{found.cases:8}{found.read:8}{found.refused:9}{len(found.bad):6}{taken:9.1f}", flush=True)
        for number, what in list(found.bad.items())[:5]:
            print(f"  {options.failures}/{name}-{number}: {what.strip().splitlines()[-1][:150]}", flush=True)
        bad += len(found.bad)
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
