"""Runs as a table: which columns are worth showing, with how many digits, and how many of them fit."""

import math
from collections.abc import Sequence
from typing import Any

from lddr.console import say
from lddr.runs.index import TRAINING_SCORES, Run, Value, common_elbo

NOT_HEADLINES = (  # the ELBO stands for them
    "elbo_noiseless",
    "reconstruction",
    "kl",
    "mean_picture",
    "explained",
    "active_latents",
    "saturated_latents",
)


def default_columns(runs: Sequence[Run], sort: str | None = None) -> list[str]:
    """The run, what it is, its state if one is not finished, the settings that differ, the scores."""
    state = ["state"] if any(run.value("state") != "finished" for run in runs) else []
    settings = [name for name in dict.fromkeys(name for run in runs for name in run.settings) if _differs(name, runs)]
    knobs = [name for name in settings if name not in ("dataset", "model", "latent", "objective", "seed")]
    seed = ["seed"] if "seed" in settings else []
    scores = [name for name in headlines(runs) if name != sort]
    by = [sort] if sort is not None and any(sort in run.scores for run in runs) else []  # must not fall off the edge
    return ["run", *state, "dataset", "model", *knobs, *seed, *by, *scores]


def known_scores(runs: Sequence[Run]) -> set[str]:
    """The names of all scores that some run has."""
    return {name for run in runs for name in run.scores}


def print_runs(runs: Sequence[Run], columns: Sequence[str] = (), sort: str | None = None) -> None:
    """Print these columns, or as many of the usual ones as fit, and say which do not.

    Lines are put together here: rich takes a millisecond for each, and there may be ten thousand.
    """
    from rich.console import Console
    from rich.text import Text

    console, wanted = Console(), columns or default_columns(runs, sort)
    cells = {column: _cells(runs, column) for column in wanted}
    first = next((name for name in headlines(runs) if name in wanted), None)
    kept = columns or _fitting(cells, console.width, sort or first)
    aligned = [_aligned(column, cells[column], _is_numeric(column, runs)) for column in kept]
    head, *lines = ("  ".join(row).rstrip() for row in zip(*aligned, strict=True))
    console.print(Text(head, style="bold"), soft_wrap=True)
    console.file.write("".join(f"{line}\n" for line in lines))
    if hidden := [column for column in wanted if column not in kept]:
        say(f"no room for {', '.join(hidden)}: name them in --columns, or use --csv or --json")


def _aligned(column: str, values: list[str], numeric: bool) -> list[str]:
    """The heading and the values, all of one width."""
    width = max(map(len, [column, *values]))
    return [text.rjust(width) if numeric else text.ljust(width) for text in [column, *values]]


def _is_numeric(column: str, runs: Sequence[Run]) -> bool:
    return not any(isinstance(run.value(column), str) for run in runs)


def harmless(cell: Any) -> Any:
    """A cell of a CSV file that no spreadsheet takes for a formula: words like one get an apostrophe in front."""
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def shown(value: Value) -> str:
    """One value, with the digits that matter."""
    if isinstance(value, float):
        return f"{value:.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"
    return "" if value is None else str(value)


def _cells(runs: Sequence[Run], column: str) -> list[str]:
    """A column's values; scores have as many decimals as the largest of them needs for about four digits."""
    values = [run.value(column) for run in runs]
    largest = max((abs(value) for value in values if isinstance(value, int | float)), default=0)
    if not any(column in run.scores for run in runs) or largest < 0.01:
        return [shown(value) for value in values]
    decimals = min(3, max(0, 3 - math.floor(math.log10(largest))))
    return [f"{value:.{decimals}f}" if isinstance(value, int | float) else shown(value) for value in values]


def _fitting(cells: dict[str, list[str]], width: int, must: str | None) -> list[str]:
    """The first columns that fit into this many characters, at least one, and the one that must not be missing."""
    widths = {column: max(map(len, [column, *values])) + 2 for column, values in cells.items()}
    kept: list[str] = []
    left = width + 2 - widths.get(must or "", 0)  # the last column has nothing to its right
    for column in cells:
        left -= 0 if column == must else widths[column]
        if kept and left < 0:
            break
        kept.append(column)
    return kept if must is None or must in kept or must not in cells else [*kept, must]


def _differs(name: str, runs: Sequence[Run]) -> bool:
    """Whether the runs that have this setting have several values of it."""
    return len({run.settings[name] for run in runs if name in run.settings}) > 1


def headlines(runs: Sequence[Run]) -> list[str]:
    """The scores that exist, without details: metrics first, since they are what runs are compared by."""
    scores = dict.fromkeys(name for run in runs for name in run.scores)
    bound = common_elbo(runs)  # runs of older versions have none but the noiseless one
    headlines = [name for name in scores if "." not in name and (name == bound or name not in NOT_HEADLINES)]
    return sorted(headlines, key=lambda name: (name in TRAINING_SCORES, name != "mig"))
