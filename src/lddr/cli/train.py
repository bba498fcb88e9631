"""`lddr demo`, `lddr models`, `lddr train` and `lddr bench`."""

import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from lddr import console
from lddr.cli.app import (
    DATASET,
    Command,
    app,
    argument,
    checkpoint_seconds,
    device,
    flag,
    group,
    listed,
    option,
    out_file,
    out_folder,
    print_markdown,
    quiet,
    threads,
    track,
    write_sections,
)
from lddr.config import PARTS, Networks, Training, all_settings, changed, configure, settings_of
from lddr.errors import UserError
from lddr.hardware import Machine, check_threads, chosen_device, keep_freed_memory
from lddr.runs.folder import PRETRAINED
from lddr.runs.index import list_runs
from lddr.runs.tables import headlines, shown
from lddr.settings import SharedSetting, Size, rules_of


@app.command()
@out_folder("demo", "The folder for the pictures, the runs and the report.")
@option("--steps", type=int, help="Training steps of each model.")
def demo(out: Path, steps: int | None) -> None:
    """Draw the datasets, train four small models, and report on them."""
    from lddr.demo import run_demo

    run_demo(out, steps)


@app.command(name="models")
@flag("--pretrained", "List the trained models that ship with lddr instead, with their scores.")
@flag("--markdown", "Print a Markdown table of all settings instead.")
def list_models(pretrained: bool, markdown: bool) -> None:
    """List the models with their papers, objectives and settings.

    It also names the values that the paper tries, and where training with the preset paper differs from the
    publication.
    """
    if pretrained:
        _print_pretrained()
        return
    if markdown:
        _print_settings()
        return
    from rich.text import Text

    from lddr.latents import latents
    from lddr.models import models
    from lddr.published_settings import published_training

    table = console.table("name", "model", "objective", "settings")
    for column in table.columns[:3]:
        column.no_wrap = True
    for family in latents:
        table.add_row(f"\n{latents[family].title} latents", style="bold")
        for name in (name for name in models if models[name].latent == family):
            goal = models[name].goal
            usual = {setting: rule.default for setting, rule in rules_of(goal).items()}
            usual |= {setting: value for setting, value in published_training(models[name]).items() if setting in usual}
            own = []
            for setting, default in usual.items():
                tried = ", ".join(f"{value:g}" for value in goal.grid.get(setting, ()))
                own.append(f"{setting} {_shown(default)}" + (f" (paper: {tried})" if tried else ""))
            paper, unlike = models[name].paper, models[name].unlike and f"not as published: {models[name].unlike}"
            named = Text("\n").join(filter(None, [Text(name), Text(paper or "", "dim")]))
            settings = Text("\n").join(filter(None, [Text("\n".join(own)), Text(unlike or "", "dim")]))
            table.add_row(named, models[name].title, goal.name, settings)
    console.show(table)


def _print_pretrained() -> None:
    table = console.table("name", "dataset", "kB", "scores", "what it shows")
    for column in table.columns[:3]:
        column.no_wrap = True
    for run in list_runs(PRETRAINED):
        scores = "\n".join(f"{name} {shown(run.value(name))}" for name in headlines([run]))
        size = f"{run.files.model_file.stat().st_size / 1000:.0f}"
        table.add_row(run.name, str(run.value("dataset")), size, scores, run.files.about)
    console.show(table)
    print("\nOpen them with: lddr explore --pretrained, lddr show NAME, or in Python lddr.Trained.load(NAME)")


def _print_settings() -> None:
    """Print every setting with its owners and default, in Markdown: the table of docs/settings.md."""
    rows = []
    for name, each in all_settings().items():
        choices = f" One of {', '.join(f'`{choice}`' for choice in each.choices)}." if each.choices else ""
        rows.append((f"`{name}`", ", ".join(each.rules), _default(each), f"{each.help}{choices}"))
    print_markdown(("setting", "of", "default", ""), rows)


def _default(setting: SharedSetting) -> str:
    return "the dataset's" if setting.default == "None" else setting.default


# the options of `lddr train`: those at the function, and one for every setting

PLACES = {  # the sections of the help; other settings follow from the part of the run that they belong to
    "Basics": "pictures model dataset preset steps seed seeds resolution out fit background correlate",
    "Optimisation": "",
    "Networks": "",
    "Latent": "latent",
    "Objective": "objective likelihood",
    "Supervision": "supervision",
    "Machine": "device threads precision compile checkpoint_seconds tensorboard track quiet",
    "Help": "",
}
RARE = {  # options that only --help-all lists
    *("fit", "background", "correlate", "schedule_steps", "weight_decay", "clip", "clip_of", "min_contrast"),
    *("kernels", "depth", "encoder", "decoder", "initialiser", "low", "high", "learn_positions", "bound"),
    *("embedding_size", "shared_codebook", "codebook_update", "ema_decay", "restart_below", "residual_levels"),
    *("discriminator_layers", "discriminator_slope", "discriminator_learning_rate", "discriminator_schedule"),
    *("discriminator_beta1", "discriminator_beta2", "diagonal_ratio", "capacity_steps", "scale", "learn_scale"),
    *("risk_of", "label_seed", "validation_share", "free_penalty"),
    *("compile", "tensorboard", "track", "checkpoint_seconds", "precision"),
}
METAVARS = {Size: "PIXELS", int: "INTEGER", float: "FLOAT", str: "TEXT", tuple: "INT,INT,INT,INT"}


def setting_options() -> list[click.Option]:
    """Return an option for every setting of any run; its text is converted with all other settings in `configure`."""
    options = []
    for name, each in all_settings().items():
        words, owners = name.replace("_", "-"), [owner for owner in each.rules if owner not in (*PARTS, "config")]
        of_whom = f" ({', '.join(owners)})" if owners and "(" not in each.help else ""
        text = f"{each.help}{of_whom}  [default: {_default(each)}]"
        if each.kind is bool:
            options.append(click.Option([f"--{words}/--no-{words}"], default=None, help=text))
        else:
            metavar = f"{{{','.join(each.choices)}}}" if each.choices else METAVARS[each.kind]
            options.append(click.Option([f"--{words}"], metavar=metavar, help=text))
    return options


def sections() -> dict[str, str]:
    """Return the section of the help for every option, except for those of objectives."""
    from lddr.latents import latents
    from lddr.supervision import Supervision

    parts: dict[str, list[Any]] = {"Optimisation": [Training], "Networks": [Networks], "Supervision": [Supervision]}
    parts["Latent"] = [latents[family] for family in latents]
    found = {name: section for section, owners in parts.items() for owner in owners for name in rules_of(owner)}
    return found | {name: section for section, names in PLACES.items() for name in names.split()}


class TrainCommand(Command):
    """Its help resolves the defaults for the model, dataset and preset in the same command."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), *setting_options()]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if {"-h", "--help", "--help-all"} & set(args):
            values = self.make_parser(ctx).parse_args(list(args))[0]
            ctx.obj = {name: value for name, value in values.items() if isinstance(value, str | bool)}
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        given, known, places = ctx.obj or {}, all_settings(), sections()
        config = _config(**{name: given.get(name) for name in (*NAMES, *known)})
        values, own = config.flat(), settings_of(config.model)
        by_section: dict[str, list[tuple[str, str]]] = {title: [] for title in PLACES}
        params = {str(each.name): each for each in self.get_params(ctx)}
        first = [name for names in PLACES.values() for name in names.split()]
        for name, each in sorted(params.items(), key=lambda item: first.index(item[0]) if item[0] in first else 99):
            if isinstance(each, click.Option) and name in own:
                each.help = f"{own[name].help}  [default: {_shown(values.get(name, own[name].default))}]"
            is_listed = name not in RARE and (name not in known or name in own)
            if (record := each.get_help_record(ctx)) and (is_listed or "help_all" in given):
                by_section["Help" if each.is_eager else places.get(name, "Objective")].append(record)
        settings = f"--model {config.model} --dataset {config.dataset} --preset {given.get('preset') or 'quick'}"
        formatter.write_paragraph()
        formatter.write_text(f"Defaults are those of {settings}; name others to see theirs.")
        write_sections(formatter, {title: rows for title, rows in by_section.items() if rows})


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple | list):
        return ",".join(map(str, value))
    return "the dataset's" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _print_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        click.echo(ctx.get_help())
        ctx.exit()


AT_ONCE: Any = {"is_eager": True, "expose_value": False}
NAMES = ("pictures", "dataset", "model", "latent", "objective", "likelihood", "supervision", "preset")


def _config(
    pictures: str | None, dataset: str | None, preset: str | None, own_factors: int | None = None, **chosen: Any
) -> Any:
    """Return the settings of a run from the words of the command."""
    from lddr.data.load import own_size

    if pictures is not None and dataset is not None:
        raise UserError(f"give the images once, as {pictures} or as --dataset {dataset}")
    name = pictures or dataset or "dsprites"
    size = own_size(name) if chosen.get("resolution") is None else None
    return configure(chosen.pop("model"), name, preset or "quick", own_size=size, own_factors=own_factors, **chosen)


@app.command(cls=TrainCommand)
@argument(
    "pictures", "[PICTURES]", required=False, help="A folder or file of your own images, or what --dataset takes."
)
@option("--model", metavar="NAME", help="A name from `lddr models`.  [default: dvae]")
@option("--dataset", metavar="NAME", help=f"{DATASET}  [default: dsprites]")
@option(
    "--preset",
    metavar="{quick,standard,paper}",
    default="quick",
    help="quick (32x32, minutes on a laptop), standard (64x64), or paper for the paper's settings.",
)
@option("--seeds", type=int, default=1, help="Train this many seeds, from --seed on, and select one without labels.")
@out_folder("runs", "Where to put the run's folder.")
@option("--latent", metavar="NAME", help="A latent instead of a model: gaussian, categorical, …")
@option("--objective", metavar="NAME", help="An objective instead of a model: elbo, beta, factor, tc, …")
@option(
    "--likelihood",
    metavar="NAME",
    help="Of the pixels: bernoulli, gaussian, laplace or continuous_bernoulli.  [default: bernoulli]",
)
@option(
    "--supervision",
    metavar="LOSS",
    help="Loss on a few labelled images, such as masked for categorical and l2 for Gaussian latents.",
)
@device
@option("--threads", type=int, help="CPU threads.  [default: as many as cores]")
@flag("--compile", "Compile the networks; worth it for long runs on a GPU, where each step becomes one graph.")
@flag("--tensorboard", "Also write event files for TensorBoard.")
@track
@checkpoint_seconds
@quiet
@flag("--help-all", "List all options, also rare ones and those of other models.", callback=_print_help, **AT_ONCE)
def train(out: Path, seeds: int, **chosen: Any) -> None:
    """Train a model; interrupted runs resume when you rerun the command.

    Each run has a folder of its own. Options that are left out have the value of the preset, or else the paper's.
    """
    from lddr.data.load import is_path, load_dataset

    machine = Machine(**{each.name: chosen.pop(each.name) for each in fields(Machine) if each.name in chosen})
    if str(chosen["pictures"]).lower() in ("true", "false"):
        raise UserError(f"flags take no value: leave {chosen['pictures']} out, or write --no- before the flag's name")
    config, images = _config(**chosen), None
    if config.supervision is not None and is_path(config.dataset):
        images = load_dataset(*config.images)
        config = _config(**chosen, own_factors=len(images.space.factors))
        if chosen["labels"] is None and not images.space.is_complete:
            config = changed(config, {"labels": images.space.num_labelled})
    if seeds != 1:
        from lddr.seeds import NothingLearnedError, train_seeds

        try:
            print(train_seeds(config, seeds, out, machine))
        except NothingLearnedError as error:
            console.say(str(error))
            sys.exit(1)
        return
    from lddr.runs.run import run

    if chosen_device(machine.device).type == "cpu":
        keep_freed_memory()
    print(run(config, out, machine, images))


bench = group("bench", "Measure how fast this machine trains.")


@bench.command(name="train")
@option("--steps", type=int, help="Steps in each repeat.  [default: 5 on the CPU, 200 elsewhere]")
@threads
@option("--device", default="cpu", metavar="NAME", help="cpu, cuda, mps, or auto for the best there is.")
@flag("--compile", "Also measure compiled networks, as with `lddr train --compile`.")
@out_file("Also write the table as JSON here.")
def bench_train(steps: int | None, threads: int, device: str, compile: bool, out: Path | None) -> None:  # noqa: A002
    """Time training steps of the paper's networks, and estimate how long a run takes."""
    from lddr.bench import run_train

    check_threads(threads)
    run_train(steps, threads, out, device, compile)


@bench.command(name="models")
@option(
    "--models",
    metavar="NAME,NAME…",
    default="dvae,factor-dvae,categorical+klm,categorical+nhp,fsq-ae,tripod",
    help="Names from `lddr models`, or a latent and an objective such as categorical+nhp.",
)
@option("--dataset", default="dsprites", metavar="NAME", help="A name from `lddr data list`.")
@option("--preset", default="paper", metavar="{quick,standard,paper}", help="Whose settings to use.")
@threads
@out_file("Also write the table as JSON here.")
def bench_models(models: str, dataset: str, preset: str, threads: int, out: Path | None) -> None:
    """Time training steps of several models on the CPU, compared with the first."""
    from lddr.bench import run_models

    check_threads(threads)
    run_models(listed(models), dataset, preset, threads, out)
