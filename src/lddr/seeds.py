"""Several seeds of one model: trained on all cores, one of them chosen without labels, and the reasons printed."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from lddr import console
from lddr.config import Config, changed
from lddr.console import say
from lddr.data.dataset import Dataset
from lddr.errors import UserError
from lddr.hardware import Machine, chosen_device
from lddr.runs.index import Run, read_run
from lddr.runs.loop import Stopped
from lddr.runs.run import REMEDY, run
from lddr.runs.tables import shown
from lddr.selection.ranking import RunEncoder, Selection, select
from lddr.selection.selector import SEEDS_SELECTOR

ENOUGH = 3  # models to compare, so that the choice is more than a guess
SCALES = {"udr": " (0 is nothing in common, 0.9 the same codes)"}
COLUMNS = ("reconstruction", "active_latents")


class NothingLearnedError(UserError):
    """Every seed has collapsed, so that there is no model to choose."""


def train_seeds(
    config: Config,
    count: int,
    out: Path,
    machine: Machine | None = None,
    dataset: Dataset | None = None,
    card: bool = True,
) -> Path:
    """Train `count` seeds, starting from that of the settings, below `out`; return the folder of the chosen one.

    Finished seeds are not trained again, and interrupted ones resume. `dataset` holds the images if they are only in
    memory. The chosen run gets a card unless `card` is False.
    """
    if type(count) is not int or count < 1:
        raise UserError(f"the number of seeds must be a whole number from 1 on, not {count!r}")
    machine = machine or Machine()
    configs = [changed(config, {"seed": config.training.seed + number}) for number in range(count)]
    failures = _train(configs, out, machine, dataset)
    runs = [found for each in configs if (found := read_run(out / each.run_name)).state == "finished"]
    if not runs:
        raise UserError(f"no seed could be trained: {failures[0]}")
    chosen, selection = _choice(runs, machine, dataset)
    for sentence in [*(f"a seed failed: {failure}" for failure in failures), *left_out(count, selection)]:
        say(sentence)
    if not machine.quiet:
        _print(runs, chosen, selection)
    if card:
        from lddr.report.pages import write_card

        page, _ = write_card(chosen, dataset=dataset)
        if not machine.quiet:
            say(f"open {page} to see its latents")
    return chosen.folder


def _train(configs: Sequence[Config], out: Path, machine: Machine, dataset: Dataset | None) -> list[str]:
    """Train the unfinished seeds, on all cores if possible; return the errors of those that failed."""
    reason = _why_in_turn(machine)
    if reason is None:
        return _on_all_cores(configs, out, machine, dataset)
    if not machine.quiet:
        say(f"the seeds are trained one after the other: {reason}")
    for config in configs:
        if not machine.quiet:
            say(f"seed {config.training.seed} of {configs[0].training.seed} to {configs[-1].training.seed}")
        run(config, out, machine, dataset)
    return []


def _why_in_turn(machine: Machine) -> str | None:
    if find_spec("ray") is None:
        return 'Ray, which trains them on all cores at once, is not installed; get it with: pip install "lddr[cluster]"'
    if machine.on_log is not None:
        return "on_log is called in this process"
    device = chosen_device(machine.device).type
    return None if device == "cpu" else f"they share the device {device}"


def _on_all_cores(configs: Sequence[Config], out: Path, machine: Machine, dataset: Dataset | None) -> list[str]:
    """Train the seeds as a sweep, with one thread for each unless the machine has another number."""
    import joblib

    from lddr.sweeps.cluster import SweepOptions, run_study
    from lddr.sweeps.study import Study

    options = SweepOptions(
        cpus_per_run=min(machine.threads or 1, joblib.cpu_count()),
        checkpoint_seconds=machine.checkpoint_seconds,
        quiet=machine.quiet,
        track=machine.track,
        tensorboard=machine.tensorboard,
        compile=machine.compile,
    )
    study = Study(f"{len(configs)} seeds of {configs[0].model}", configs, ())
    outcome = run_study(study, out, options, dataset)
    if outcome.stopped:
        raise Stopped(f"stopped, the seeds so far are saved in {out}; start it again to resume")
    return [f"{failure.folder}: {failure.error}" for failure in outcome.failures]


def _choice(runs: Sequence[Run], machine: Machine, dataset: Dataset | None) -> tuple[Run, Selection | None]:
    """Return the chosen run, and the ranking unless only one run has learned anything."""
    learned = [run for run in runs if not run.collapsed]
    if not learned:
        what = "their reconstructions are no better than the mean image"
        raise NothingLearnedError(f"all {len(runs)} finished seeds have learned nothing: {what}; {REMEDY}")
    if len(learned) == 1:
        return learned[0], None
    encoder = RunEncoder(device=machine.device, dataset=dataset)
    selection = select(runs, SEEDS_SELECTOR, encoder, machine.quiet)
    return next(run for run in runs if str(run.folder) == selection.chosen), selection


def left_out(count: int, selection: Selection | None) -> list[str]:
    """Return how many of the seeds were not compared, and why."""
    if selection is None:
        return [f"only 1 of {count} seeds has learned anything: there is nothing to compare it with"]
    found = selection.left_out.items()
    return [f"{len(them)} of {count} seeds left out: {Path(them[0]).name} {why}" for why, them in found]


def _print(runs: Sequence[Run], chosen: Run, selection: Selection | None) -> None:
    """Print a row for each seed, best first, and why this one was chosen; on stderr."""
    values = {} if selection is None else {place.run: place.value for place in selection.ranking}
    table = console.table(numbers=("seed", SEEDS_SELECTOR, *(name.replace("_", " ") for name in COLUMNS)))
    table.add_column()
    for each in sorted(runs, key=lambda run: [*values, str(run.folder)].index(str(run.folder))):
        value = values.get(str(each.folder))
        compared = "-" if value is None else f"{value:.3f}"
        note = "chosen" if each is chosen else "collapsed" if each.collapsed else ""
        table.add_row(shown(each.value("seed")), compared, *map(shown, map(each.value, COLUMNS)), note)
    console.show(table, stderr=True)
    for sentence in () if selection is None else reasons(chosen, selection):
        say(sentence)


def reasons(chosen: Run, selection: Selection) -> list[str]:
    """Return how much the seeds agree, why this one was chosen, and what makes the choice doubtful."""
    name, values = selection.selector, [place.value for place in selection.ranking]
    spread = f"{min(values):.3f} to {max(values):.3f}, median {median(values):.3f}{SCALES.get(name, '')}"
    best = {"higher": "highest", "lower": "lowest"}[selection.better]
    why = f"it has the {best} {name}, {selection.value:.3f} ({selection.summary})"
    sentences = [f"{name} of the seeds: {spread}", f"seed {chosen.value('seed')} was chosen without labels: {why}"]
    if (tied := sum(place.rank == 1 for place in selection.ranking)) > 1:
        sentences.append(f"{tied} seeds share the first place; the first by name was chosen")
    if len(values) < ENOUGH:
        sentences.append(f"only {len(values)} seeds were compared, which says little; train {ENOUGH} or more")
    return sentences
