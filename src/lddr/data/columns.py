"""Tables of factors from files and arrays: columns, their values, and the unknown entries."""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lddr.arrays import as_array
from lddr.data.array_files import TEXT_KINDS, arrays_in
from lddr.data.factors import UNKNOWN, Factor, FactorTable
from lddr.errors import UserError
from lddr.files import content_of, in_one_line, named, reading_untrusted

Columns = dict[str, NDArray]  # name → one number or text per image; NaN or "" where it is unknown
Row = list[str]

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
HEADINGS = ("file", "filename", "image", "path")  # a column with one of these headings holds file names
UNKNOWN_CELLS = ("", "nan", "NaN", "NA", "N/A", "<NA>")  # cells of unlabelled images
LEAST_NUMBERS = 10
LARGEST = 256 << 20  # bytes of a table
# the ways a table may name an image, and the share of a column's cells that must match for it to hold file names
WAYS: tuple[tuple[Callable[[str], str], float], ...] = (
    (lambda name: name, 0.5),
    (lambda name: str(PurePosixPath(name).with_suffix("")), 0.5),
    (lambda name: PurePosixPath(name).name, 0.5),
    (lambda name: PurePosixPath(name).stem, 0.5),
    (lambda name: _only_number(PurePosixPath(name).stem), 0.9),
)


def columns_of_csv(path: Path, files: list[str]) -> Columns:
    """Return the columns of factors.csv in the order of `files`, matched by file name if a column has them.

    Images without a row, and blank cells, are unknown. Without a table, there are no columns.
    """
    if not path.exists() and not path.is_symlink():
        return {}
    with reading_untrusted(path, "a table of factors", "save it as CSV in UTF-8"):
        separator, names, rows = _table(path)
        columns = list(zip(*rows, strict=True))
        naming = _naming(names, columns, files)
        order = _order(path, names, naming, files, len(rows))
        decimal = "." if separator == "," else ","
        return {
            name: _parsed(path, name, ["" if row is None else columns[place][row].strip() for row in order], decimal)
            for place, name in enumerate(names)
            if place not in naming
        }


def pairs_of_csv(path: Path, files: Sequence[str], count: int) -> NDArray[np.int64]:
    """Return the image numbers in a table of pairs, which names `files` or has numbers below `count`: (pairs, 2)."""
    if not path.exists():
        raise UserError(f"{path} does not exist; pairs must be a number of factors, random or a .csv file")
    with reading_untrusted(path, "a table of pairs", "save it as CSV in UTF-8"):
        _, names, rows = _table(path)
    if len(names) != 2:
        raise UserError(f"{path} must have two columns, the images of each pair, not {len(names)}")
    known = {str(number): number for number in range(count)} | {_plain(name): place for place, name in enumerate(files)}
    if strange := next((cell for row in rows for cell in row if _plain(cell) not in known), None):
        what = "file name" if files else "number"
        raise UserError(f"{path} has a pair with {in_one_line(strange)!r}, which is the {what} of no image")
    pairs = np.array([[known[_plain(cell)] for cell in row] for row in rows], np.int64)
    if (same := np.flatnonzero(pairs[:, 0] == pairs[:, 1])).size:
        raise UserError(f"{path}, row {same[0] + 2}: an image is paired with itself; give two images")
    return pairs


def _decoded(path: Path) -> str:
    content = content_of(path, LARGEST)
    marked = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    for encoding in ["utf-16"] if marked else ["utf-8-sig", "cp1252"]:  # the second one has all of Latin-1's letters
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    raise UserError(f"{path} is not text in UTF-8 or Latin-1; save it as CSV in UTF-8")


def _table(path: Path) -> tuple[str, Row, list[Row]]:
    """Return the separator that splits every row into as many cells as the header, the column names and the rows.

    A table with one column needs no separator.
    """
    text, tables = _decoded(path), {}
    for separator in SEPARATORS:
        with suppress(csv.Error):  # the quotes are unbalanced
            rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
            tables[separator] = [row for row in rows if any(cell.strip() for cell in row)]
    widths = {separator: {len(row) for row in rows} for separator, rows in tables.items()}
    fitting = [separator for separator, found in widths.items() if len(found) == 1 and found != {1}]
    plain = [separator for separator in fitting if not any('"' in cell for row in tables[separator] for cell in row)]
    fitting = plain or fitting
    if len(fitting) > 1:
        words = " or ".join(SEPARATORS[separator] for separator in fitting)
        raise UserError(f"{path} can be read with {words} between the cells; put the cells in double quotes")
    if not fitting and len(tables) < len(SEPARATORS):
        raise UserError(f"{path} has a quoted cell without an end; fix its quotes")
    separator = fitting[0] if fitting else max(tables, key=lambda each: len(tables[each][0]) if tables[each] else 0)
    header, *rows = tables[separator] or [[]]
    names = [name.strip() for name in header]
    if not all(names) or not names or len(set(names)) < len(names):
        raise UserError(f"{path} must start with a line of distinct column names")
    if not rows:
        raise UserError(f"{path} has no rows below its column names; give a row per labelled image, or remove the file")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            wanted, found = in_one_line(", ".join(names)), in_one_line(str(row))
            raise UserError(f"{path}, row {number}: expected {len(header)} values ({wanted}), found {found}")
    return separator, names, rows


def _naming(names: Row, columns: list[tuple[str, ...]], files: list[str]) -> dict[int, list[str]]:
    """Return the columns that name the images, each with the file of every row, or the cell itself if no file matches.

    Names are text, or many distinct numbers: a few may be the values of a factor, unless they have one of the HEADINGS.
    """
    headed = [place for place, name in enumerate(names) if name.casefold() in HEADINGS]
    best, most = {place: [cell.strip() for cell in columns[place]] for place in headed}, 0
    for way, share in WAYS:
        known = {_plain(way(file)): file for file in files}
        for place, cells in enumerate(columns):
            plain = [_plain(cell) for cell in cells]
            found = sum(cell in known for cell in plain)
            are_many = len(set(plain)) == len(plain) >= LEAST_NUMBERS
            may_be = are_many or place in headed or not _are_numbers(plain)
            if len(known) == len(files) and may_be and found >= max(most, share * len(plain), 1):
                named = [known.get(name, cell.strip()) for name, cell in zip(plain, cells, strict=True)]
                best = best | {place: named} if found == most else {place: named}
                most = found
    return best


def _plain(name: str) -> str:
    return name.strip().replace("\\", "/").removeprefix("./").casefold()


def _only_number(stem: str) -> str:
    """Return the number in a stem: img_0007 → 7; a stem without exactly one number is returned unchanged."""
    numbers = re.findall(r"\d+", stem)
    return str(int(numbers[0])) if len(numbers) == 1 else stem


def _order(
    path: Path, names: list[str], naming: dict[int, list[str]], files: list[str], rows: int
) -> Sequence[int | None]:
    """Return the row of each file; None if it has none."""
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
        raise UserError(f"{path} has a row for a file that is not in the folder: {in_one_line(strange[0])}{more}")
    return [place_of.get(file) for file in files]


def _parsed(path: Path, name: str, cells: Row, decimal: str) -> NDArray:
    """Parse cells as numbers if every known one is, else as text; text that is unique to each image is no factor."""
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


HOW = "save it with numpy.savez(path, images=images, factors=factors)"


def factor_table(columns: Columns, count: int) -> FactorTable:
    """Return the factor space of `count` images; a factor's values are the sorted known entries of its column."""
    factors, numbers = [], [np.zeros((count, 0), np.int64)]
    for name, column in columns.items():
        known = column != "" if column.dtype.kind in TEXT_KINDS else column == column  # NaN is not equal to itself
        values, codes = np.unique(column[known], return_inverse=True)
        if not len(values):
            raise UserError(
                f"the factor {in_one_line(name)} has no known value; label some images with it or remove it"
            )
        factors.append(Factor(name, len(values), tuple(values.tolist())))
        place = np.full((count, 1), UNKNOWN, np.int64)
        place[known, 0] = codes
        numbers.append(place)
    return FactorTable(factors, np.concatenate(numbers, axis=1))


def factor_table_of(factors: Any, count: int | None = None) -> FactorTable:
    """Return the factor space of a table given in Python.

    Parameters
    ----------
    factors
        A dict of columns, a DataFrame, a structured array, or an array of shape (count,) or (count, factors). NaN,
        None, an empty string or -1 mark an unknown value; -1 counts as a value in a column with other negative numbers,
        or with fewer than two other values.
    count
        The number of images; by default that of the first column.
    """
    arrays = {name: as_array(values) for name, values in _named(factors).items()}
    if count is None:
        count = next((len(column) for column in arrays.values() if column.ndim), 0)
    return factor_table({name: _column(column, name, count) for name, column in arrays.items()}, count)


def _named(factors: Any) -> dict[str, Any]:
    """Return the columns of any type of table, by name."""
    if isinstance(factors, Mapping) or hasattr(factors, "columns"):  # a dict, or a pandas or polars table
        names = list(factors if isinstance(factors, Mapping) else factors.columns)
        if len(set(map(str, names))) < len(names):
            raise UserError("the factors must have distinct names")
        return {str(name): factors[name] for name in names}
    array = as_array(factors)
    if array.dtype.names:
        return {name: array[name] for name in array.dtype.names}
    if array.ndim == 1:
        name = getattr(factors, "name", None)  # of a pandas Series
        return {name if isinstance(name, str) else "factor 0": array}
    if array.ndim != 2:
        raise UserError(f"expected factors of shape (samples, factors), got {array.shape}")
    return {f"factor {number}": column for number, column in enumerate(array.T)}


def _column(values: NDArray, name: str, count: int) -> NDArray:
    """Return one column as numbers or text, with NaN or "" where it is unknown."""
    column = _words(values)
    if column.shape != (count,):
        raise UserError(
            f"the factor {in_one_line(name)} has the shape {column.shape}; give one value for each of {count}"
        )
    if column.dtype.kind == "O":
        column = _of_objects(column)
    if column.dtype.kind == "U":
        return np.where(np.isin(np.char.strip(column), UNKNOWN_CELLS), "", column)
    if column.dtype.kind not in "biuf":
        raise UserError(f"the factor {in_one_line(name)} holds {column.dtype}; give numbers or words")
    if column.dtype.kind == "f" and np.isinf(column).any():
        raise UserError(f"the factor {in_one_line(name)} has infinite values; give finite numbers, NaN where unknown")
    return _without_marks(column)


def _of_objects(column: NDArray) -> NDArray:
    """Convert objects to numbers if every known one is a number, else to text."""
    known = [value is not None and str(value).strip() not in UNKNOWN_CELLS for value in column]
    if all(isinstance(value, int | float | np.number) for value in column[known]):
        return np.array([float(value) if is_known else np.nan for value, is_known in zip(column, known, strict=True)])
    return np.array([str(value) if is_known else "" for value, is_known in zip(column, known, strict=True)])


def _without_marks(column: NDArray) -> NDArray:
    """Replace -1 by NaN if it marks unknown values: there are at least two other values, and none is negative."""
    if column.dtype.kind not in "if" or not (column == UNKNOWN).any():
        return column
    others = np.unique(column[(column == column) & (column != UNKNOWN)])
    marks = len(others) > 1 and others[0] >= 0
    return np.where(column == UNKNOWN, np.nan, column) if marks else column


def columns_of_npz(path: Path, count: int) -> Columns:
    """Return the columns of `factors` and `factor_names` in an .npz file; none without `factors`."""
    found = arrays_in(path, ("factors", "factor_names"), HOW)
    with named(path):
        return columns_of_arrays(found, count, "images")


def columns_of_arrays(arrays: Mapping[str, NDArray], count: int, what: str) -> Columns:
    """Return the columns of `factors`, named by `factor_names`: numbers or text for each of `count` samples."""
    if "factors" not in arrays:
        return {}
    factors = arrays["factors"]
    table = factors.reshape(-1, 1) if factors.ndim == 1 else factors
    if table.ndim != 2 or len(table) != count:
        raise UserError(f"'factors' has the shape {factors.shape}; save it as ({count} {what}, factors)")
    names = _names(arrays.get("factor_names"), table.shape[1])
    return {name: _column(column, name, count) for name, column in zip(names, table.T, strict=True)}


def _names(names: NDArray | None, count: int) -> list[str]:
    if names is None:
        return [f"factor {number}" for number in range(count)]
    given = [str(name).encode("utf-8", "replace").decode() for name in _words(names).ravel().tolist()]
    if names.ndim != 1 or names.dtype.kind not in TEXT_KINDS or len(set(given)) != count or len(given) != count:
        raise UserError(f"'factor_names' must be {count} distinct names, one per column of 'factors'")
    return given


def _words(array: NDArray) -> NDArray:
    return np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array
