"""`lddr demo`, `lddr models` and `lddr train`."""

from dataclasses import make_dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import arg

from lddr import console
from lddr.cli.app import Folder, Tracker, Whole, app
from lddr.runs.machine import Machine


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

    from lddr.latents.family import latents
    from lddr.models import models
    from lddr.settings import rules_of

    table = Table("name", "model", "objective", "settings", box=None, header_style="bold", pad_edge=False)
    for column in table.columns[:3]:
        column.no_wrap = True
    for family in latents:
        table.add_row(f"\n[bold]{latents[family].title} latents[/bold]")
        for name in (name for name in models if models[name].latent == family):
            goal = models[name].goal
            own = [_with_values(setting, rule.default, goal.grid) for setting, rule in rules_of(goal).items()]
            named = "\n".join(filter(None, [name, models[name].paper and f"[dim]{models[name].paper}[/dim]"]))
            table.add_row(named, models[name].title, goal.name, "\n".join(own))
    Console().print(table)


def _print_pretrained() -> None:
    """Every shipped model, and how to look at it."""
    from lddr.runs.index import list_runs
    from lddr.runs.pretrained import HOME
    from lddr.runs.tables import headlines, shown

    table = console.table("name", "dataset", "kB", "scores", "what it shows")
    for column in table.columns[:3]:
        column.no_wrap = True
    for run in list_runs(HOME):
        scores = "\n".join(f"{name} {shown(run.value(name))}" for name in headlines([run]))
        size = f"{run.files.model_file.stat().st_size / 1000:.0f}"
        table.add_row(run.name, str(run.value("dataset")), size, scores, run.files.about)
    console.show(table)
    print("\nOpen them with: lddr explore --pretrained, lddr show NAME, or in Python lddr.Trained.load(NAME)")


def _with_values(name: str, default: float, grid: dict[str, tuple[float, ...]]) -> str:
    tried = ", ".join(f"{value:g}" for value in grid.get(name, ()))
    return f"{name} {default:g}" + (f" (paper: {tried})" if tried else "")


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
        flags.append((name, _flag(text, metavar, hint)))
    return make_dataclass("SettingFlags", [(name, flag, None) for name, flag in flags])


_METAVARS = {int: "INT", float: "FLOAT", str: "TEXT", tuple: "INT,INT,INT,INT", bool: "{true,false}"}


def _flag(text: str, metavar: str, hint: str) -> Any:
    return Annotated[str | None, arg(help=text, metavar=metavar, help_behavior_hint=hint)]


@app.command
def train(
    settings: Annotated[Any, arg(name="")],
    model: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="(default: dvae)")] = None,
    latent: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="(default: the model's)")] = None,
    objective: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="(default: the model's)")] = None,
    dataset: str = "dsprites",
    preset: Annotated[str, arg(metavar="{paper,quick}")] = "paper",
    out: Folder = Path("runs"),
    device: str = "auto",
    threads: Whole = None,
    compile: bool = False,  # noqa: A002
    tensorboard: bool = False,
    track: Tracker = None,
    checkpoint_seconds: float = Machine.checkpoint_seconds,
    quiet: bool = False,
) -> None:
    """Train a model in a folder of its own, or go on with it: started again, a run continues exactly where it was.

    What is left out has the value of the preset, else the paper's.

    Args:
        settings: Of the run.
        model: A name from `lddr models`.
        latent: A latent family instead of a model's name: gaussian, categorical, …
        objective: An objective instead of a model's name: elbo, beta, factor, tc, …
        dataset: A name from `lddr data list`, or a folder, .npz or .npy file of your own images.
        preset: The paper's settings, or quick ones for a laptop.
        out: Where the run's folder goes.
        device: cpu, cuda, mps, or auto for the best there is.
        threads: CPU threads; as many as there are free cores when left out.
        compile: Let torch compile the networks, and on CUDA replay each step as one graph; for long runs on a GPU.
        tensorboard: Write event files too.
        track: Tell this tracker about the run: its settings, what is logged, the scores at the end.
        checkpoint_seconds: Seconds between two checkpoints.
        quiet: Show no progress.
    """
    from lddr.config import configure
    from lddr.data.load import own_side

    side = own_side(dataset) if settings.resolution is None else None
    names = {"latent": latent, "objective": objective}
    config = configure(model, dataset, preset, **names, own_side=side, **vars(settings))
    from lddr.runs.carry_out import run

    print(run(config, out, Machine(device, threads, compile, quiet, tensorboard, checkpoint_seconds, track)))


def know_settings() -> None:
    """Give `lddr train` a flag for every setting that is known by now."""
    train.__annotations__["settings"] = Annotated[setting_flags(), arg(name="")]
