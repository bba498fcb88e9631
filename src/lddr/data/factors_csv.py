"""factors.csv as people's programs write it: any usual separator and encoding, rows by the names of the images."""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from lddr.errors import UserError
from lddr.foreign import content_of, foreign, in_one_line

Columns = dict[str, NDArray]  # name → one number or word per image; NaN or "" where it is unknown
Row = list[str]

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
HEADINGS = ("file", "filename", "image", "path")  # whoever calls a column so means the pictures
UNKNOWN_CELLS = ("", "nan", "NaN", "NA", "N/A", "<NA>")  # of images that are not labelled
LEAST_NUMBERS = 10
LARGEST = 256 << 20  # bytes of a table
# how a table may call a picture, and the share of a column's cells that must do so for it to be the column of names
WAYS: tuple[tuple[Callable[[str], str], float], ...] = (
    (lambda name: name, 0.5),
    (lambda name: str(PurePosixPath(name).with_suffix("")), 0.5),
    (lambda name: PurePosixPath(name).name, 0.5),
    (lambda name: PurePosixPath(name).stem, 0.5),
    (lambda name: _only_number(PurePosixPath(name).stem), 0.9),
)


def columns_of_csv(path: Path, files: list[str]) -> Columns:
    """The columns of factors.csv in the order of `files`, by name where a column has names; nothing without a table.

    Images without a row, and blank cells, are unknown.
    """
    if not path.exists() and not path.is_symlink():
        return {}
    with foreign(path, "a table of factors", "save it as CSV in UTF-8"):
        return _columns(path, files)


def _columns(path: Path, files: list[str]) -> Columns:
    separator, table = _table(path, _decoded(path))
    header, *rows = table or [[]]
    _check_shape(path, header, rows)
    names, columns = [name.strip() for name in header], list(zip(*rows, strict=True)) or [()] * len(header)
    headed = [place for place, name in enumerate(names) if name.casefold() in HEADINGS]
    naming = _naming(columns, files, headed) or {place: [cell.strip() for cell in columns[place]] for place in headed}
    order = _order(path, names, naming, files, len(rows))
    decimal = "." if separator == "," else ","
    return {
        name: _parsed(path, name, ["" if row is None else columns[place][row].strip() for row in order], decimal)
        for place, name in enumerate(names)
        if place not in naming
    }


def _decoded(path: Path) -> str:
    content = content_of(path, LARGEST)
    marked = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    for encoding in ["utf-16"] if marked else ["utf-8-sig", "cp1252"]:  # the second has all of Latin-1's letters
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    raise UserError(f"{path} is not text in UTF-8 or Latin-1; save it as CSV in UTF-8")


def _cells(text: str, separator: str) -> list[Row] | None:
    """The rows that are not empty; None if quotes are not where they belong."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error:
        return None
    return [row for row in rows if any(cell.strip() for cell in row)]


def _table(path: Path, text: str) -> tuple[str, list[Row]]:
    """What splits every row into as many cells as the header, and the cells; a table of one column is split nowhere."""
    tables = {separator: rows for separator in SEPARATORS if (rows := _cells(text, separator)) is not None}
    fitting = [separator for separator, rows in tables.items() if len({len(row) for row in rows}) == 1]
    fitting = [separator for separator in fitting if len(tables[separator][0]) > 1]
    plain = [separator for separator in fitting if not any('"' in cell for row in tables[separator] for cell in row)]
    fitting = plain or fitting
    if len(fitting) > 1:
        words = " or ".join(SEPARATORS[separator] for separator in fitting)
        raise UserError(f"{path} can be read with {words} between the cells; put the cells in double quotes")
    if not fitting and len(tables) < len(SEPARATORS):
        raise UserError(f"{path} has a quoted cell without an end; mend its quotes")
    widest = max(tables, key=lambda separator: len(tables[separator][0]) if tables[separator] else 0)
    separator = fitting[0] if fitting else widest
    return separator, tables[separator]


def _check_shape(path: Path, header: Row, rows: list[Row]) -> None:
    names = [name.strip() for name in header]
    if not all(names) or not names or len(set(names)) < len(names):
        raise UserError(f"{path} must start with a line of distinct column names")
    if not rows:
        raise UserError(f"{path} has no rows below its column names; give a row per labelled image, or remove the file")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            wanted, found = in_one_line(", ".join(names)), in_one_line(str(row))
            raise UserError(f"{path}, row {number}: expected {len(header)} values ({wanted}), found {found}")


def _naming(columns: list[tuple[str, ...]], files: list[str], headed: list[int]) -> dict[int, list[str]]:
    """The columns that name the images, each with the file of every row, or the cell itself if there is none such.

    A few numbers are names only under one of the HEADINGS, which the columns `headed` have.
    """
    best: dict[int, list[str]] = {}
    most = 0
    for way, share in WAYS:
        known = {_plain(way(file)): file for file in files}
        for place, cells in enumerate(columns):
            plain = [_plain(cell) for cell in cells]
            found = sum(cell in known for cell in plain)
            may_be = _may_be_names(plain) or place in headed
            if len(known) == len(files) and may_be and found >= max(most, share * len(plain), 1):
                named = [known.get(name, cell.strip()) for name, cell in zip(plain, cells, strict=True)]
                best = best | {place: named} if found == most else {place: named}
                most = found
    return best


def _may_be_names(cells: Row) -> bool:
    """Words; of numbers only many, all different: a few could as well be the values of a factor."""
    return bool(cells) and (not _are_numbers(cells) or len(set(cells)) == len(cells) >= LEAST_NUMBERS)


def _plain(name: str) -> str:
    return name.strip().replace("\\", "/").removeprefix("./").casefold()


def _only_number(stem: str) -> str:
    """img_0007 → 7; a stem with no number or several is left as it is."""
    numbers = re.findall(r"\d+", stem)
    return str(int(numbers[0])) if len(numbers) == 1 else stem


def _order(
    path: Path, names: list[str], naming: dict[int, list[str]], files: list[str], rows: int
) -> Sequence[int | None]:
    """The row of each file, None where it has none."""
    if not naming:
        if rows != len(files):
            cure = "give one row per image, or a column with the file names to label only some of them"
            raise UserError(f"{path} has {rows} rows but the folder has {len(files)} images; {cure}")
        return range(rows)
    (place, named), *others = naming.items()
    for other, differently in others:
        if differently != named:
            raise UserError(
                f"{path}: the columns {names[place]!r} and {names[other]!r} name different images; drop one"
            )
    if "" in named:
        raise UserError(f"{path}, row {named.index('') + 2}: the cell of {names[place]!r} names no image; fill it in")
    (most, times), place_of = Counter(named).most_common(1)[0], {file: row for row, file in enumerate(named)}
    if times > 1:
        raise UserError(f"{path} has {times} rows for {in_one_line(most)}; give one row per image")
    if strange := sorted(place_of.keys() - set(files)):
        more = f" and {len(strange) - 1} others" if strange[1:] else ""
        raise UserError(f"{path} has a row for what is not in the folder: {in_one_line(strange[0])}{more}")
    return [place_of.get(file) for file in files]


def _parsed(path: Path, name: str, cells: Row, decimal: str) -> NDArray:
    """Numbers where every known cell is one, else words; words that are all different for all images tell no factor."""
    cells = ["" if cell in UNKNOWN_CELLS else cell for cell in cells]
    for candidates in (cells, [cell.replace(decimal, ".") for cell in cells]):
        if _are_numbers([cell for cell in candidates if cell]):
            return np.array([float(cell) if cell else np.nan for cell in candidates])
    if len(cells) > 1 and "" not in cells and len(set(cells)) == len(cells):
        what = f"{path}: the column {in_one_line(repr(name))} is different in every row and names no images"
        raise UserError(f"{what}, so it cannot be a factor; take it out, or write the names of the images into it")
    return np.array(cells)


def _are_numbers(cells: Row) -> bool:
    try:
        return bool(np.isfinite([float(cell) for cell in cells]).all())
    except ValueError:
        return False
