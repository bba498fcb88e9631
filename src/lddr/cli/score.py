"""`lddr metrics`, `lddr evaluate` and `lddr score`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lddr import console
from lddr.cli.app import (
    FILE,
    app,
    argument,
    device,
    flag,
    folders,
    listed,
    markdown,
    one_of,
    option,
    out_file,
    print_markdown,
    runs_in,
)
from lddr.console import counted
from lddr.errors import UserError
from lddr.files import check_writable, write_json
from lddr.hardware import chosen_device
from lddr.runs.folder import located
from lddr.runs.index import finished_runs, read_run
from lddr.runs.tables import default_columns, known_scores, print_runs

if TYPE_CHECKING:
    from lddr.metrics.evaluate import Entries

SIDE_BY_SIDE = 3  # at most this many runs are columns of one table; more are listed below each other


@app.command(name="metrics")
@markdown
def list_metrics(markdown: bool) -> None:
    """List the metrics with what they need and their published settings."""
    from rich.text import Text

    from lddr.metrics.metric import metric_descriptions

    found = metric_descriptions()
    if markdown:
        rows = [(f"`{name}`", needs, about.replace("|", "\\|"), settings) for name, needs, about, settings in found]
        print_markdown(("name", "needs", "what it is", "settings"), rows)
        return
    table = console.table("name", "needs", "what it is, and its settings")
    for column in table.columns[:2]:
        column.no_wrap = True
    for name, needs, about, settings in found:
        table.add_row(name, needs, Text.assemble(f"{about}\n", (settings, "dim")))
    console.show(table)


def metric_options(seed: str) -> Callable:
    """Add the options of `evaluate` and `score`; `seed` is what the seed decides."""
    options = [
        option(
            "--metrics",
            metavar="NAME,NAME…",
            default="quick",
            help="Names from `lddr metrics`; quick for all that take seconds, or all.",
        ),
        option(
            "--dci",
            **one_of("published", "fast"),
            default="published",
            help="DCI's gradient boosting: the published one, or one on pre-sorted codes, nine times as fast.",
        ),
        option(
            "--set",
            "changes",
            multiple=True,
            metavar="METRIC.SETTING=VALUE",
            help="Change a setting, such as mig.num_bins=30 (scores are then not comparable with published ones).",
        ),
        option("--seed", type=int, default=0, help=f"Decides {seed}."),
        option("--jobs", type=int, default=-1, help="Cores to fit with; -1 for all."),
        option(
            "--bins", type=int, help="Divide continuous factors into this many equal bins; they are left out otherwise."
        ),
        option(
            "--bootstrap",
            type=int,
            default=0,
            help="Add a 90 % interval to every score, from this many resamples such as 200; 0 for none.",
        ),
    ]

    def add(command: Callable) -> Callable:
        for each in reversed(options):
            command = each(command)
        return command

    return add


@app.command()
@folders("Finished runs, or folders that hold runs, at any depth.")
@metric_options("which images are sampled")
@option(
    "--gap",
    **one_of("paper", "authors"),
    default="paper",
    help="The straight-through gap of the ELBO, or of the training loss as in the authors' code.",
)
@option(
    "--distribution",
    **one_of("uniform", "training"),
    default="uniform",
    help="Sample images uniformly, or with the correlations that the runs were trained on (--correlate).",
)
@device
@flag("--force", "Recompute scores that exist.")
def evaluate(
    folders: tuple[Path, ...],
    metrics: str,
    dci: str,
    changes: tuple[str, ...],
    gap: str,
    device: str,
    force: bool,
    jobs: int,
    **options: Any,
) -> None:
    """Score finished runs with metrics.

    The scores are written to scores.json of each run. Existing ones with the same settings are reused. If some runs
    cannot be scored, the others are, and the exit code is 1.
    """
    from lddr.metrics.evaluate import Options
    from lddr.metrics.metric import choose_metrics, parallel_jobs, parse_metric_settings
    from lddr.runs.evaluate import evaluate_run

    metrics = metric_names(metrics, folders)
    changes = (
        *changes,
        *([f"dci.estimator={dci}"] * (dci != "published")),
        *([f"gap.variant={gap}"] * (gap != "paper")),
    )
    settings = parse_metric_settings(changes)
    wanted = list(choose_metrics(metrics, settings))
    places = [located(str(folder)) for folder in folders]
    runs_in(places)
    runs = finished_runs(places)
    stored_name = Options(**options).stored_name  # a mistake is reported once, not once per run
    chosen_device(device)
    found: dict[Path, Entries] = {}
    with parallel_jobs(jobs):
        for number, folder in enumerate(runs, 1):
            print(f"{folder.name} ({number} of {len(runs)})", file=sys.stderr)
            try:
                scores = evaluate_run(
                    folder, wanted, settings=settings, jobs=jobs, device=device, force=force, **options
                )
            except UserError as error:
                if len(runs) == 1:
                    raise
                console.say(str(error))
            else:
                found[folder] = {name: scores["metrics"][name] for name in map(stored_name, wanted)}
    if len(found) > SIDE_BY_SIDE:
        scored = list(map(read_run, found))
        settings_that_differ = [column for column in default_columns(scored) if column not in known_scores(scored)]
        print_runs(scored, [*settings_that_differ, *map(stored_name, wanted)])
    elif found:
        _show({folder.name: entries for folder, entries in found.items()}, metrics)
    if found:
        print(f"kept in scores.json of {'the run' if len(found) == 1 else 'each run'}")
    if failed := len(runs) - len(found):
        console.say(f"{failed} of {counted(len(runs), 'run')} could not be scored, for the reasons above")
        sys.exit(1)


@app.command()
@argument("codes", "FILE", nargs=-1, required=True, type=FILE, help="An .npz file with codes and factors.")
@metric_options("how samples are divided for metrics that train")
@out_file("Also write the scores, with all details, as JSON here.")
def score(
    codes: tuple[Path, ...], metrics: str, dci: str, changes: tuple[str, ...], out: Path | None, **options: Any
) -> None:
    """Score codes from any framework against ground-truth factors.

    The .npz file holds `codes` (samples, latents), `factors` (samples, factors) and, if you like, `factor_names`.
    Metrics that need images or a model are listed with the reason.
    """
    import warnings

    from lddr.metrics.evaluate import read_codes, score_codes
    from lddr.metrics.metric import FewSamplesWarning, parse_metric_settings

    metrics = metric_names(metrics, codes)
    if len(codes) > 1:
        raise UserError(f"lddr score takes one file, not {len(codes)}; score them one after the other")
    settings = parse_metric_settings([*changes, *([f"dci.estimator={dci}"] * (dci != "published"))])
    if out is not None and out.parent.is_dir():
        check_writable(out.parent)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewSamplesWarning)  # the note is printed below
        entries = score_codes(*read_codes(codes[0]), metrics, settings=settings, announce=False, **options)
    _show({codes[0].name: entries}, metrics)
    if out is not None:
        write_json(out, entries)
        print(f"kept in {out}")


def metric_names(given: str, paths: Sequence[Path]) -> str:
    """Return the names of metrics in their own spelling; refuse names that follow as words of their own."""
    from lddr.metrics.metric import metrics

    spelled = {name.lower(): name for name in ("quick", "all", *metrics)}
    names = [spelled.get(name.lower().replace("-", "_"), name) for name in listed(given)]
    strays = [str(path).strip(",") for path in paths if not path.exists()]
    strays = [name for name in strays if name.lower().replace("-", "_") in spelled]
    if strays and given != "quick":
        raise UserError(f"separate names with commas: --metrics {','.join([*names, *strays])}")
    return ",".join(names)


def _show(found: Mapping[str, "Entries"], metrics: str) -> None:
    """Print a row per metric and a column per run, then why scores are missing, and the remaining notes."""
    from lddr.metrics.evaluate import score_text
    from lddr.metrics.metric import metrics as known

    table = console.table("metric", numbers=found)
    notes: dict[str, dict[str, None]] = {}  # note → the metrics it applies to
    left_out: dict[str, str] = {}
    for metric in next(iter(found.values())):
        entries = [by_metric[metric] for by_metric in found.values()]
        table.add_row(metric, *map(score_text, entries))
        for entry in entries:
            left_out |= entry.get("factors_left_out", {})
            for part in (entry, entry.get("bootstrap", {})):  # why a score or its interval is missing, and caveats
                for note in (part[key] for key in ("reason", "scored_on", "warning") if key in part):
                    notes.setdefault(note, {})[metric] = None
    console.show(table)
    lines = [f"{', '.join(names)}: {note}" for note, names in notes.items()]
    lines += [f"left out, {name} is {why}" for name, why in left_out.items()]
    if metrics == "quick":
        shown_names = {name.partition("@")[0] for name in next(iter(found.values()))}
        others = ", ".join(name for name in known if name not in shown_names)
        lines += [f"slower ones, by name or with --metrics all: {others}"]
    if lines:
        print(*lines, sep="\n")
