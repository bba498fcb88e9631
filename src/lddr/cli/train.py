"""`lddr demo`, `lddr models` and `lddr train`."""

import sys
from dataclasses import make_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from lddr import console
from lddr.cli.app import LEFT_OUT, Folder, Tracker, Whole, app
from lddr.errors import UserError
from lddr.hardware import Machine
from lddr.settings import Size


@app.command
def demo(out: Folder = Path("demo"), steps: Whole = None) -> None:
    """Draw every built-in dataset, train a few VAEs and D-VAEs on circles, and make a report of them.

    Args:
        out: The folder for the pictures, the runs and the report.
        steps: Training steps of each model.
    """
    from lddr.demo import run_demo

    run_demo(out, steps)


@app.command(name="models")
def models_(pretrained: bool = False, markdown: bool = False) -> None:
    """List the models: whose they are, latents, objectives, settings with defaults, and the values the paper tries.

    Where training with the preset `paper` is not as published, it says how.

    Args:
        pretrained: List the trained models that ship with lddr instead, with their scores.
        markdown: Print every setting there is instead, as a Markdown table.
    """
    if pretrained:
        _print_pretrained()
        return
    if markdown:
        print(settings_table())
        return
    from rich.console import Console
    from rich.table import Table

    from lddr.latents import latents
    from lddr.models import models
    from lddr.published_settings import published_training
    from lddr.settings import rules_of

    table = Table("name", "model", "objective", "settings", box=None, header_style="bold", pad_edge=False)
    for column in table.columns[:3]:
        column.no_wrap = True
    for family in latents:
        table.add_row(f"\n[bold]{latents[family].title} latents[/bold]")
        for name in (name for name in models if models[name].latent == family):
            goal = models[name].goal
            usual = {setting: rule.default for setting, rule in rules_of(goal).items()}
            usual |= {setting: value for setting, value in published_training(models[name]).items() if setting in usual}
            own = [_with_values(setting, default, goal.grid) for setting, default in usual.items()]
            named = "\n".join(filter(None, [name, models[name].paper and f"[dim]{models[name].paper}[/dim]"]))
            own += [f"[dim]not as published: {models[name].unlike}[/dim]"] if models[name].unlike else []
            table.add_row(named, models[name].title, goal.name, "\n".join(own))
    Console().print(table)


def _print_pretrained() -> None:
    """Every shipped model, and how to look at it."""
    from lddr.runs.folder import PRETRAINED
    from lddr.runs.index import list_runs
    from lddr.runs.tables import headlines, shown

    table = console.table("name", "dataset", "kB", "scores", "what it shows")
    for column in table.columns[:3]:
        column.no_wrap = True
    for run in list_runs(PRETRAINED):
        scores = "\n".join(f"{name} {shown(run.value(name))}" for name in headlines([run]))
        size = f"{run.files.model_file.stat().st_size / 1000:.0f}"
        table.add_row(run.name, str(run.value("dataset")), size, scores, run.files.about)
    console.show(table)
    print("\nOpen them with: lddr explore --pretrained, lddr show NAME, or in Python lddr.Trained.load(NAME)")


def _with_values(name: str, default: float | str, grid: dict[str, tuple[float, ...]]) -> str:
    tried = ", ".join(f"{value:g}" for value in grid.get(name, ()))
    shown = default if isinstance(default, str) else f"{default:g}"
    return f"{name} {shown}" + (f" (paper: {tried})" if tried else "")


def settings_table() -> str:
    """Every setting with its owners and default, in Markdown: the table of docs/settings.md."""
    from lddr.config import all_settings

    rows = ["| setting | of | default | |", "| --- | --- | --- | --- |"]
    for name, each in all_settings().items():
        default = "the dataset's" if each.default == "None" else each.default
        choices = f" One of {', '.join(f'`{choice}`' for choice in each.choices)}." if each.choices else ""
        rows.append(f"| `{name}` | {', '.join(each.rules)} | {default} | {each.help}{choices} |")
    return "\n".join(rows)


def setting_flags() -> type:
    """A dataclass with an optional text for every setting there is: what a text means is decided in one place."""
    from lddr.config import PARTS, all_settings, supervisions

    losses = "; ".join(f"{loss} for {' and '.join(names)}" for loss, names in supervisions().items())
    flags = [("supervision", _flag(f"Loss on a few labelled images: {losses} latents.", "LOSS", "(default: none)"))]
    for name, each in all_settings().items():
        owners = [owner for owner in each.rules if owner not in (*PARTS, "config")]
        text = f"{each.help} ({', '.join(owners)})" if owners and "(" not in each.help else each.help
        hint = "(default: the dataset's)" if each.default == "None" else f"(default: the preset's, else {each.default})"
        metavar = f"{{{','.join(each.choices)}}}" if each.choices else _METAVARS[each.kind]
        aliases = (f"--no-{name.replace('_', '-')}",) if each.kind is bool else None
        flags.append((name, _flag(text, metavar, hint, aliases)))
    return make_dataclass("SettingFlags", [(name, flag, None) for name, flag in flags])


_METAVARS = {Size: "PIXELS", int: "INT", float: "FLOAT", str: "TEXT", tuple: "INT,INT,INT,INT", bool: ""}


def _flag(text: str, metavar: str, hint: str, aliases: tuple[str, ...] | None = None) -> Any:
    return Annotated[str | None, arg(help=text, metavar=metavar, help_behavior_hint=hint, aliases=aliases)]


def with_plain_flags(words: list[str]) -> list[str]:
    """`--mean-bias` and `--no-mean-bias` as `--mean-bias true` and `false`: every setting is a text with a value."""
    from lddr.config import all_settings

    switches = {f"--{name.replace('_', '-')}" for name, each in all_settings().items() if each.kind is bool}
    plain: list[str] = []
    for place, word in enumerate(words):
        if word in switches and "".join(words[place + 1 : place + 2]).lower() not in ("true", "false"):
            plain.append(f"{word}=true")
        elif word.startswith("--no-") and (positive := f"--{word.removeprefix('--no-')}") in switches:
            plain.append(f"{positive}=false")
        else:
            plain.append(word)
    return plain


@app.command
def train(
    settings: Annotated[Any, arg(name="")],
    pictures: Annotated[Positional[str | None], arg(metavar="[PICTURES]", help_behavior_hint=LEFT_OUT)] = None,
    model: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="(default: dvae)")] = None,
    latent: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="(default: the model's)")] = None,
    objective: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="(default: the model's)")] = None,
    likelihood: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="(default: bernoulli)")] = None,
    dataset: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="(default: dsprites)")] = None,
    seeds: int = 1,
    preset: Annotated[str, arg(metavar="{quick,standard,paper}")] = "quick",
    out: Folder = Path("runs"),
    device: str = "auto",
    threads: Whole = None,
    compile: bool = False,  # noqa: A002
    tensorboard: bool = False,
    track: Tracker = None,
    checkpoint_seconds: float = Machine.checkpoint_seconds,
    quiet: bool = False,
) -> None:
    """Train a model in a folder of its own. Interrupted runs resume when you rerun the command.

    Settings that are left out have the values of the preset, or else the paper's.

    Args:
        settings: Of the run.
        pictures: A folder or .npz file of your own images, or what --dataset takes.
        model: A name from `lddr models`.
        latent: A latent family instead of a model's name: gaussian, categorical, …
        objective: An objective instead of a model's name: elbo, beta, factor, tc, …
        likelihood: Likelihood of the pixels: bernoulli, gaussian, laplace or continuous_bernoulli.
        dataset: A name from `lddr data list`, or a folder, .npz or .npy file of your own images.
        seeds: Train so many seeds, from --seed on, on all cores, and choose one without labels.
        preset: Quick settings (32x32, minutes on a laptop), standard ones (64x64), or the paper's.
        out: Where the run's folder goes.
        device: cpu, cuda, mps, or auto for the best there is.
        threads: CPU threads; as many as there are cores when left out.
        compile: Let torch compile the networks, and on CUDA replay each step as one graph; for long runs on a GPU.
        tensorboard: Write event files too.
        track: Tell this tracker about the run: its settings, what is logged, the scores at the end.
        checkpoint_seconds: Seconds between two checkpoints.
        quiet: Show no progress.
    """
    from lddr.config import changed, configure
    from lddr.data.load import is_path, load_dataset, own_size

    if pictures is not None and dataset is not None:
        raise UserError(f"give the images once, as {pictures} or as --dataset {dataset}")
    name, images = pictures or dataset or "dsprites", None
    size = own_size(name) if settings.resolution is None else None
    names: dict[str, Any] = {"latent": latent, "objective": objective, "likelihood": likelihood}
    chosen = partial(configure, model, name, preset, **names, own_size=size, **vars(settings))
    config = chosen()
    machine = Machine(device, threads, compile, quiet, tensorboard, checkpoint_seconds, track)
    if config.supervision is not None and is_path(name):
        images = load_dataset(*config.images)
        config = chosen(own_factors=len(images.space.factors))
        if settings.labels is None and not images.space.is_complete:
            config = changed(config, {"labels": images.space.num_labelled})
    if seeds != 1:
        from lddr.seeds import NothingLearnedError, train_seeds

        try:
            print(train_seeds(config, seeds, out, machine))
        except NothingLearnedError as error:
            console.say(str(error))
            sys.exit(1)
        return
    from lddr.hardware import chosen_device, keep_freed_memory
    from lddr.runs.run import run

    if chosen_device(device).type == "cpu":
        keep_freed_memory()
    print(run(config, out, machine, images))


def know_settings() -> None:
    """Give `lddr train` a flag for every setting that is known by now."""
    train.__annotations__["settings"] = Annotated[setting_flags(), arg(name="")]
