"""`lddr metrics`, `lddr evaluate` and `lddr score`."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from lddr.cli.app import Changes, File, Roots, Whole, app
from lddr.errors import UserError

if TYPE_CHECKING:
    from lddr.metrics.evaluate import Entries

SIDE_BY_SIDE = 3  # at most this many runs are columns of one table; more are listed below each other


@app.command(name="metrics")
def metrics_(markdown: bool = False) -> None:
    """List the metrics: what each needs, its settings with the published values, and what it is.

    Args:
        markdown: As the table of docs/metrics.md.
    """
    from rich.console import Console

    from lddr.console import table
    from lddr.metrics.metric import metric_descriptions

    if markdown:
        rows = [("name", "needs", "what it is", "settings"), ("---",) * 4]
        rows += [(f"`{row[0]}`", row[1], row[2].replace("|", "\\|"), row[3]) for row in metric_descriptions()]
        print("\n".join(f"| {' | '.join(row)} |" for row in rows))
        return
    shown = table("name", "needs", "what it is, and its settings")
    for column in shown.columns[:2]:
        column.no_wrap = True
    for name, needs, about, settings in metric_descriptions():
        shown.add_row(name, needs, f"{about}\n[dim]{settings}[/]")
    Console().print(shown)


@app.command
def evaluate(
    folders: Roots = (Path("runs"),),
    metrics: str = "quick",
    dci: Literal["published", "fast"] = "published",
    gap: Literal["paper", "authors"] = "paper",
    set: Changes = (),  # noqa: A002
    seed: int = 0,
    jobs: int = -1,
    bins: Whole = None,
    bootstrap: int = 0,
    distribution: Literal["uniform", "training"] = "uniform",
    device: str = "auto",
    force: bool = False,
) -> None:
    """Score finished runs: each distinct image is encoded once, and the scores are kept in the run's scores.json.

    What is there already with the same settings is not computed again. A run that cannot be scored is reported, the
    others are scored, and the exit code is 1.

    Args:
        folders: Finished runs, or folders that hold runs, at any depth.
        metrics: Names from `lddr metrics`, with commas between them; quick for those that take seconds, or all.
        dci: The published gradient boosting, or the same on codes sorted once, nine times as fast; see docs/metrics.md.
        gap: The straight-through gap of the ELBO, or of the training loss as in the authors' code.
        set: Other settings, such as mig.num_bins=30 (not comparable with published scores then).
        seed: Decides which images are drawn.
        jobs: Cores to fit with; -1 for all.
        bins: Put continuous factors into this many equal bins; they are left out otherwise.
        bootstrap: Give every score a 90 % interval from this many resamples of its rows, 200 say; 0 for none.
        distribution: Sample images uniformly, or with the correlations that the runs were trained on (--correlate).
        device: Where the networks run: cpu, cuda, mps, or auto for the best there is.
        force: Compute anew what is there already.
    """
    from lddr.console import say
    from lddr.hardware import chosen_device
    from lddr.metrics.evaluate import Options
    from lddr.metrics.metric import choose_metrics, parallel_jobs, parse_metric_settings
    from lddr.runs.evaluate import evaluate_run
    from lddr.runs.folder import located
    from lddr.runs.index import finished_runs, read_run
    from lddr.runs.tables import default_columns, known_scores, print_runs

    changes = [*set, *([f"dci.estimator={dci}"] * (dci != "published")), *([f"gap.variant={gap}"] * (gap != "paper"))]
    settings = parse_metric_settings(changes)
    wanted = list(choose_metrics(metrics, settings))
    runs = finished_runs([located(str(folder)) for folder in folders])
    shared: dict[str, Any] = {"seed": seed, "bins": bins, "bootstrap": bootstrap, "distribution": distribution}
    stored_name = Options(**shared).stored_name  # a mistake is reported once, not once per run
    chosen_device(device)
    options: dict[str, Any] = {**shared, "device": device, "force": force}
    found: dict[Path, Entries] = {}
    with parallel_jobs(jobs):
        for number, folder in enumerate(runs, 1):
            print(f"{folder.name} ({number} of {len(runs)})", file=sys.stderr)
            try:
                scores = evaluate_run(folder, wanted, settings=settings, jobs=jobs, **options)
            except UserError as error:
                if len(runs) == 1:
                    raise
                say(str(error))
            else:
                found[folder] = {name: scores["metrics"][name] for name in map(stored_name, wanted)}
    if len(found) > SIDE_BY_SIDE:
        scored = list(map(read_run, found))
        settings_that_differ = [column for column in default_columns(scored) if column not in known_scores(scored)]
        print_runs(scored, [*settings_that_differ, *map(stored_name, wanted)])
    elif found:
        _show({folder.name: entries for folder, entries in found.items()}, metrics)
    if found:
        print("kept in scores.json of each run")
    if failed := len(runs) - len(found):
        say(f"{failed} of {len(runs)} runs could not be scored, for the reasons above")
        sys.exit(1)


@app.command
def score(
    codes: Annotated[Positional[Path], arg(metavar="FILE")],
    metrics: str = "quick",
    dci: Literal["published", "fast"] = "published",
    set: Changes = (),  # noqa: A002
    seed: int = 0,
    jobs: int = -1,
    bins: Whole = None,
    bootstrap: int = 0,
    out: File = None,
) -> None:
    """Score codes from any framework: an .npz file with `codes` (samples, latents) and `factors` (samples, factors).

    `factor_names` in the file is optional. What needs images or a model is named with the reason.

    Args:
        codes: The .npz file.
        metrics: Names from `lddr metrics`, with commas between them; quick for those that take seconds, or all.
        dci: The published gradient boosting, or the same on codes sorted once, nine times as fast; see docs/metrics.md.
        set: Other settings, such as mig.num_bins=30 (not comparable with published scores then).
        seed: Decides how samples are divided for metrics that train.
        jobs: Cores to fit with; -1 for all.
        bins: Put continuous factors into this many equal bins; they are left out otherwise.
        bootstrap: Give every score a 90 % interval from this many resamples of its rows, 200 say; 0 for none.
        out: Also write the scores, with all details, as JSON here.
    """
    import warnings

    from lddr.files import check_writable, write_json
    from lddr.metrics.evaluate import read_codes, score_codes
    from lddr.metrics.metric import FewSamplesWarning, parse_metric_settings

    settings = parse_metric_settings([*set, *([f"dci.estimator={dci}"] * (dci != "published"))])
    if out is not None and out.parent.is_dir():
        check_writable(out.parent)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewSamplesWarning)  # the note is printed below
        entries = score_codes(
            *read_codes(codes), metrics, settings=settings, seed=seed, jobs=jobs, bins=bins, bootstrap=bootstrap
        )
    _show({codes.name: entries}, metrics)
    if out is not None:
        write_json(out, entries)
        print(f"kept in {out}")


def _show(found: Mapping[str, "Entries"], metrics: str) -> None:
    """Print a row per metric and a column per run, then why scores are missing, and the remaining notes."""
    from rich.console import Console
    from rich.text import Text

    from lddr.console import table
    from lddr.metrics.evaluate import score_text
    from lddr.metrics.metric import metrics as known

    shown = table("metric")
    for name in found:
        shown.add_column(Text(name), justify="right", overflow="fold")
    notes: dict[str, dict[str, None]] = {}  # note → the metrics it applies to
    left_out: dict[str, str] = {}
    for metric in next(iter(found.values())):
        entries = [by_metric[metric] for by_metric in found.values()]
        shown.add_row(metric, *map(score_text, entries))
        for entry in entries:
            left_out |= entry.get("factors_left_out", {})
            for note in _said_of(entry):
                notes.setdefault(note, {})[metric] = None
    console = Console()
    console.print(shown)
    lines = [f"{', '.join(names)}: {note}" for note, names in notes.items()]
    lines += [f"left out, {name} is {why}" for name, why in left_out.items()]
    if metrics == "quick":
        shown_names = {name.partition("@")[0] for name in next(iter(found.values()))}
        others = ", ".join(name for name in known if name not in shown_names)
        lines += [f"slower ones, by name or with --metrics all: {others}"]
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _said_of(entry: Mapping[str, Any]) -> list[str]:
    """Return why a score or its interval is missing, and the caveats of an entry."""
    places = entry, entry.get("bootstrap", {})
    return [place[key] for place in places for key in ("reason", "scored_on", "warning") if key in place]
