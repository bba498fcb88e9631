"""Damage: what disks, downloads, editors and strangers do to a file."""

import json
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

Mutation = Callable[[bytearray, Random], None]

EXTREMES = [0, 1, 2**7, 2**8 - 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 10**12, 2**63 - 1, 2**63, 2**64 - 1]
TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[A-Za-z_][A-Za-z_0-9]*|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?')
PHRASES = [
    *(
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"-1",
        b"0",
        b"-0.0",
        b"1e300",
        b"9" * 400,
        b"9" * 5000,
        b"0.1",
        b"1000000000000",
    ),
    *(
        b"null",
        b"true",
        b"nan",
        b"inf",
        b"[]",
        b"{}",
        b'""',
        b"[1, [2]]",
        b'{"a": {"b": 1}}',
        b"[" * 5000,
        b'{"a":' * 5000,
    ),
    *(
        b'"\\ud800"',
        b'"\xff\xfe"',
        b'"\\u0000"',
        b"\0",
        b'"../../../etc"',
        b'"/"',
        b'"="',
        b'"$x_{"',
        b'"' + b"x" * 3000 + b'"',
    ),
    *("²".encode(), b'"\xc2\xb2"', b"1979-05-27", b"0x10", b"\n", b";", b",", b"\t", b"=", b"[[a]]", b"'"),
]


VALUES = [
    *(float("nan"), float("inf"), -float("inf"), 1e300, -1e300, 10**400, 10**12, -1, 0, 1, 0.5, True, None),
    *("", "x", "\ud800", "=1+1", "../..", "/", "$x_{", "9" * 300, "nan", "dvae", "vae", "factor", "x" * 2000, "a\nb"),
    *(
        [],
        {},
        [1, [2]],
        [float("nan")],
        {"a": {"b": 1}},
        {"name": "x"},
        {"score": "x"},
        [[]],
        [["x"]],
        json.loads("[" * 300 + "]" * 300),
    ),
]


def mutated(content: bytes, random: Random, is_text: bool = False) -> bytes:
    """The content with some damage."""
    changed = bytearray(content)
    for _ in range(random.choice([1, 1, 1, 2, 3, 8])):
        random.choice(BYTES + 2 * TEXT if is_text else BYTES)(changed, random)
    return bytes(changed)


def _place(content: bytearray, random: Random) -> int:
    """Somewhere; half of the time near an end, where formats keep their headers."""
    if not content:
        return 0
    near = random.randrange(min(len(content), 256))
    return random.choice(
        [random.randrange(len(content)), random.randrange(len(content)), near, len(content) - 1 - near]
    )


def flip(content: bytearray, random: Random) -> None:
    if content:
        content[_place(content, random)] ^= 1 << random.randrange(8)


def overwrite(content: bytearray, random: Random) -> None:
    place = _place(content, random)
    content[place : place + random.choice([1, 4, 16])] = random.randbytes(random.choice([1, 4, 16]))


def put_extreme(content: bytearray, random: Random) -> None:
    size, order, place = random.choice([2, 4, 8]), random.choice(["little", "big"]), _place(content, random)
    number = (random.choice(EXTREMES) + random.choice([-1, 0, 0, 1])) % 2 ** (8 * size)
    content[place : place + size] = number.to_bytes(size, order)


def truncate(content: bytearray, random: Random) -> None:
    del content[_place(content, random) :]


def cut(content: bytearray, random: Random) -> None:
    place = _place(content, random)
    del content[place : place + random.choice([1, 3, 8, 64, 1000])]


def repeat(content: bytearray, random: Random) -> None:
    place = _place(content, random)
    content[place:place] = content[place : place + random.choice([1, 8, 64, 1000])] * random.choice([1, 1, 5])


def splice(content: bytearray, random: Random) -> None:
    start, place, length = _place(content, random), _place(content, random), random.choice([4, 32, 500])
    content[place : place + length] = content[start : start + length]


def append(content: bytearray, random: Random) -> None:
    content += random.randbytes(random.choice([1, 8, 100]))


def blank(content: bytearray, random: Random) -> None:
    place, length = _place(content, random), random.choice([8, 64, 512])
    content[place : place + length] = bytes(len(content[place : place + length]))


def replace_token(content: bytearray, random: Random) -> None:
    """A word, a number or a text by something that has no business there."""
    found = list(TOKEN.finditer(content))
    if found:
        start, end = random.choice(found).span()
        content[start:end] = random.choice(PHRASES)


def move_token(content: bytearray, random: Random) -> None:
    """One token in the place of another: keys as values, words as numbers."""
    found = list(TOKEN.finditer(content))
    if found:
        (start, end), (first, last) = random.choice(found).span(), random.choice(found).span()
        content[start:end] = content[first:last]


def insert_phrase(content: bytearray, random: Random) -> None:
    place = _place(content, random)
    content[place:place] = random.choice(PHRASES)


def change_value(content: bytearray, random: Random) -> None:
    """A value of JSON, or of a line of JSON, by one of another kind, or under another name, or gone."""
    lines = [bytes(content)] if random.random() < 0.5 else content.splitlines(keepends=True)
    place = random.randrange(len(lines)) if lines else 0
    try:
        tree = json.loads(lines[place])
    except (ValueError, RecursionError, IndexError):
        return
    homes = list(_homes(tree))
    if homes:
        home = random.choice(homes)
        key = random.choice(list(home) if isinstance(home, dict) else range(len(home)))
        old = home.pop(key)
        name = key if random.random() < 0.9 else random.choice(["x", "score", "\ud800", "", "=1"])
        value = old if random.random() < 0.1 else random.choice(VALUES)
        if isinstance(home, list):
            home.insert(key, value)
        elif random.random() < 0.9:
            home[name] = value
        lines[place] = json.dumps(tree).encode() + b"\n"
        content[:] = b"".join(lines)


def _homes(tree: Any) -> Iterator[Any]:
    """Every object and list that is not empty."""
    if isinstance(tree, dict | list) and tree:
        yield tree
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from _homes(value)


def drop_line(content: bytearray, random: Random) -> None:
    lines = content.splitlines(keepends=True)
    if lines:
        del lines[random.randrange(len(lines))]
        content[:] = b"".join(lines)


BYTES: list[Mutation] = [flip, flip, overwrite, put_extreme, put_extreme, truncate, cut, repeat, splice, append, blank]
TEXT: list[Mutation] = [replace_token, replace_token, *6 * [change_value], move_token, insert_phrase, drop_line]
