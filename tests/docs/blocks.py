"""The code blocks of README and docs, and the commands in them."""

import re
import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(lddr [^`…]+)`")


@dataclass(frozen=True)
class Block:
    """What stands between two fences."""

    page: str
    kind: str  # python, sh, toml …
    title: str  # the name of a file, where it has one
    text: str

    @property
    def commands(self) -> list[list[str]]:
        """Of a shell block: the words of each command."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [words for line in lines for words in _divided(shlex.split(line, comments=True)) if words]


def _divided(words: list[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for word in words:
        ends = word.endswith(";") or word == "&&"
        found[-1] += [word.removesuffix(";")] if word != "&&" else []
        found += [[]] if ends else []
    return found


@cache
def pages() -> dict[str, str]:
    """The text of every page that has code for readers."""
    paths = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("results/*.md")]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(paths)}


@cache
def blocks(page: str) -> list[Block]:
    found = []
    for match in _FENCE.finditer(pages()[page]):
        kind, _, rest = match["info"].partition(" ")
        title = re.search(r'title="([^"]+)"', rest)
        found.append(Block(page, kind, title[1] if title else "", match["text"]))
    return found


def inline_commands(page: str) -> list[list[str]]:
    """The commands in the text itself: `lddr sweep circles --preset quick`."""
    spans = _INLINE.findall(_FENCE.sub("", pages()[page]))
    return [shlex.split(" ".join(span.split())) for span in spans if "--" in span and "|" not in span]
