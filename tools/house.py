"""Measure the house: lines and files of each room, habits of the code, and the files between a command and its formula.

    python tools/house.py           # print the tables of docs/architecture.md
    python tools/house.py --write   # put them into the page

A walk is traced: the real command runs, and when it calls the target function for the first time, the files of lddr on
the call stack are those that a reader opens on the way.
"""

import ast
import contextlib
import io
import os
import re
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
SOURCE = ROOT / "src"
ROOMS = {
    "the library": "src/lddr",
    "the reproduction of the paper": "src/lddr_paper",
    "benchmarks and tools": "benchmarks tools",
    "tests": "tests",
}
TRAIN = "train --dataset circles --resolution 16 --steps 2 --quiet --device cpu --threads 1 --model tc-dvae --out"
WALKS = {  # what a reader follows: (command, target), where the target is FILE:FUNCTION below src
    "a batch to the loss": (TRAIN, "lddr/losses.py:total_correlation"),
    "a representation to its scores": ("evaluate --metrics mig", "lddr/metrics/mig.py:mig"),
    "runs to a figure": ("report --out {folder}/report", "lddr_paper/score_figures.py:all_curves"),
    "one run to its page": ("show --out {folder}/card", "lddr/report/traversals.py:"),
}


class Reached(BaseException):
    """The target was called; nothing in between may catch this."""


def files_to(target: str, act: Callable[[], Any]) -> list[str]:
    """Return the files of lddr on the call stack when `act` first calls the target, outermost first."""
    name, function = target.split(":")
    found: list[str] = []

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or found or not code.co_filename.endswith(f"/src/{name}"):
            return
        if code.co_name == function or (not function and not code.co_name.startswith("<")):
            found.extend(dict.fromkeys(reversed([*_files_of(frame)])))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    if not found:
        raise SystemExit(f"{target} was not called")
    return found


def _files_of(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(SOURCE):
            yield str(path.relative_to(SOURCE))
        frame = frame.f_back


def walks() -> dict[str, list[str]]:
    """Return the files of every walk."""
    from lddr.cli import main

    def command(words: list[str]) -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main(words)

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for title, (words, target) in WALKS.items():
            place = Path(folder) / "runs"
            argument = str(next(place.iterdir())) if words.startswith("show") else str(place)
            parts = [*words.format(folder=folder).split(), argument]
            found[title] = files_to(target, lambda parts=parts: command(parts))  # type: ignore[misc]
    return found


def sizes() -> dict[str, tuple[int, int]]:
    """Return the lines and files of Python in every room."""
    found = {}
    for room, folders in ROOMS.items():
        paths = [path for folder in folders.split() for path in (ROOT / folder).rglob("*.py")]
        found[room] = sum(path.read_text("utf-8").count("\n") for path in paths), len(paths)
    return found


def code_lines(text: str) -> int:
    """Return the number of lines that are neither blank, nor comments, nor docstrings."""
    tree = ast.parse(text)
    strings = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and not line.startswith("#") and number not in strings for number, line in lines)


def habits() -> dict[str, str]:
    """Return figures about the library's source that show whether it is easy to read."""
    texts = [path.read_text("utf-8") for path in (ROOT / "src/lddr").rglob("*.py")]
    total = sum(text.count("\n") for text in texts)
    imports = sum(bool(re.match(r"\s*(from \S+ import|import )", line)) for text in texts for line in text.splitlines())
    names = Counter(
        node.name
        for text in texts
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    )
    commands = {"show", "push", "select", "evaluate", "train", "demo", "report"}  # a command and what it calls
    repeated = sorted(name for name, count in names.items() if count > 1 and name not in commands)
    return {
        "lines of code (no docstrings, comments, blank lines)": f"{sum(map(code_lines, texts)):,}",
        "files of at most 50 lines": f"{sum(text.count(chr(10)) <= 50 for text in texts)}",
        "import lines": f"{imports / total:.0%}",
        "public names with two definitions, commands apart": ", ".join(repeated) or "0",
    }


def tables() -> str:
    """Return the tables in Markdown."""
    lines = ["| room | lines | files |", "| --- | ---: | ---: |"]
    lines += [f"| {room} | {count:,} | {files} |" for room, (count, files) in sizes().items()]
    lines += ["", "| the library's source | |", "| --- | --- |"]
    lines += [f"| {name} | {value} |" for name, value in habits().items()]
    lines += ["", "| walk | files | in this order |", "| --- | ---: | --- |"]
    lines += [f"| {title} | {len(files)} | {' → '.join(map(_short, files))} |" for title, files in walks().items()]
    return "\n".join(lines)


def _short(name: str) -> str:
    return f"`{name.removeprefix('lddr/')}`"


def main() -> None:
    """Print the tables, or write them between the markers of the page."""
    os.environ.setdefault("COLUMNS", "120")
    text = tables()
    if "--write" not in sys.argv:
        print(text)
        return
    marked = re.compile(r"(<!-- house -->\n).*?(\n<!-- /house -->)", re.DOTALL)
    PAGE.write_text(marked.sub(lambda found: found[1] + text + found[2], PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
