"""The command tree: how commands are listed, explained and refused, and the options that several of them share."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from lddr.console import counted
from lddr.errors import UserError, hint
from lddr.runs.index import Run, gather
from lddr.runs.tables import matching, parse_condition

RENAMED = {"--only": "--where", "--scale": "--preset", "--root": "a FOLDER after the other arguments"}
SYNONYMS = {  # what users of other libraries type → an option of ours
    "--lr": "--learning-rate",
    "--epochs": "--steps",
    "--iterations": "--steps",
    "--max-steps": "--steps",
    "--batch": "--batch-size",
    "--latents": "--num-latents",
    "--latent-dim": "--num-latents",
    "--z-dim": "--num-latents",
    "--categories": "--num-categories",
    "--lambda": "--covariance-weight",
    "--kl": "--kl-weight",
    "--gpu": "--device cuda",
    "--cuda": "--device cuda",
    "--data": "--dataset",
    "--output": "--out",
    "--output-dir": "--out",
    "--workers": "--threads",
}


class Argument(click.Argument):
    """A positional argument with a help text."""

    def __init__(self, *names: Any, help: str = "", **given: Any) -> None:  # noqa: A002
        super().__init__(*names, **given)
        self.help = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self.metavar or "", self.help or ""


class Command(click.Command):
    """A command whose help explains its arguments, too, as click's does from 8.5 on."""

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: they come with the options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            if record := each.get_help_record(ctx):
                sections.setdefault("Arguments" if isinstance(each, Argument) else "Options", []).append(record)
        write_sections(formatter, sections)


def write_sections(formatter: click.HelpFormatter, sections: dict[str, list[tuple[str, str]]]) -> None:
    for title, rows in sections.items():
        with formatter.section(title):
            formatter.write_dl(rows, col_max=26)


class Commands(click.Group):
    """Commands in the order of the help; an unknown one is answered with the nearest."""

    command_class = Command
    order: Sequence[str] = ()

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.commands, key=lambda name: self.order.index(name) if name in self.order else 0)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        helps = {name: self.commands[name].help or "" for name in self.list_commands(ctx)}
        write_sections(formatter, {"Commands": [(name, text.partition("\n")[0]) for name, text in helps.items()]})

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name = args[0]
        if name not in self.commands and not ctx.resilient_parsing:
            if (ctx.command_path, name) == ("lddr runs", "show"):
                raise UserError("lddr runs show is now lddr show")
            known = self.list_commands(ctx)
            raise UserError(
                f"{ctx.command_path} has no command {name!r}; {hint(name, known)}There are: {', '.join(known)}"
            )
        return super().resolve_command(ctx, args)


def every_command(commands: click.Group | None = None, before: str = "lddr") -> Iterator[tuple[str, click.Command]]:
    """Iterate over all commands with their whole names, in the order of the help."""
    commands = app if commands is None else commands
    for name in commands.list_commands(click.Context(commands)):
        command = commands.commands[name]
        if isinstance(command, click.Group):
            yield from every_command(command, f"{before} {name}")
        else:
            yield f"{before} {name}", command


def sentence(error: click.UsageError) -> str:
    """Return what is wrong with the words of a command in one sentence, with the nearest option."""
    name = error.ctx.command_path if error.ctx else "lddr"
    more = f"see {name} --help"
    if isinstance(error, click.NoSuchOption):
        given = error.option_name.replace("_", "-")
        known = [flag for each in error.ctx.command.get_params(error.ctx) for flag in each.opts] if error.ctx else []
        if given in RENAMED and (RENAMED[given] in known or not RENAMED[given].startswith("-")):
            return f"{given} is now {RENAMED[given]}"
        if (meant := SYNONYMS.get(given)) and meant.split()[0] in known:
            return f"{name} has no option {given}; use {meant}"
        near = hint(given, [flag for flag in known if flag.startswith("--")]).replace("'", "").strip()
        return f"{name} has no option {given}; {near or more}"
    if isinstance(error, click.MissingParameter) and error.param:
        return f"{name} needs {error.param.metavar or error.param.opts[0]}; {more}"
    if isinstance(error, click.BadParameter) and error.param:
        shown = error.param.opts[0] if isinstance(error.param, click.Option) else error.param.metavar
        return f"{shown}: {error.message.rstrip('.')}"
    if isinstance(error, click.BadOptionUsage):
        return f"{error.option_name} needs a value"
    if error.ctx and isinstance(error.ctx.command, Commands):
        return f"{name} needs a command. There are: {', '.join(error.ctx.command.list_commands(error.ctx))}"
    return f"{name}: {error.message[:1].lower()}{error.message[1:].rstrip('.')}; {more}"


@click.group(
    cls=Commands,
    no_args_is_help=False,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
        "token_normalize_func": lambda word: word.replace("_", "-"),
    },
)
def app() -> None:
    """Train, score and select disentangled VAEs with discrete or Gaussian latents.

    Every command explains itself with --help. --version prints the version; --debug, anywhere on the line, shows the
    traceback of an error.
    """


def group(name: str, help: str) -> Any:  # noqa: A002
    """Add a group of commands to the tree."""
    made = Commands(name, help=help, no_args_is_help=False)
    app.add_command(made)
    return made


option = click.option


def argument(name: str, metavar: str, **given: Any) -> Callable:
    return click.argument(name, cls=Argument, metavar=metavar, **given)


def flag(name: str, help: str, **given: Any) -> Callable:  # noqa: A002
    return option(name, is_flag=True, help=help, **given)


def one_of(*names: str) -> Any:
    """Return the type and the metavar of an option with these values."""
    return {"type": click.Choice(names), "metavar": f"{{{','.join(names)}}}"}


FILE = click.Path(path_type=Path)
DATASET = "A name from `lddr data list`, or the path of a folder, .npz or .npy file of your own images."


def folders(help: str = "Folders that hold runs, at any depth.") -> Callable:  # noqa: A002
    """FOLDER…: runs/ if none is given."""
    return argument(
        "folders",
        "[FOLDER]...",
        nargs=-1,
        type=FILE,
        callback=lambda ctx, param, value: value or (Path("runs"),),
        help=f"{help}  [default: runs]",
    )


def out_folder(default: str | None, help: str) -> Callable:  # noqa: A002
    return option("--out", "-o", metavar="FOLDER", type=FILE, default=default, help=help)


def out_file(help: str) -> Callable:  # noqa: A002
    return option("--out", "-o", metavar="FILE", type=FILE, help=help)


RUN_HELP = "A run's folder, a part of its name, or its fingerprint."
where_to_look = argument(
    "folder", "[FOLDER]", type=FILE, default="runs", help="Where to look for a run by its name.  [default: runs]"
)
where = option(
    "--where",
    multiple=True,
    metavar="CONDITION",
    help='Keep runs like this, such as model=vae,dvae or "mig>0.3"; repeat it for further conditions.',
)
device = option("--device", default="auto", metavar="NAME", help="cpu, cuda, mps, or auto for the best there is.")
quiet = flag("--quiet", "Print no progress.")
threads = option("--threads", type=int, default=1, help="CPU threads.")
track = option("--track", metavar="{wandb,mlflow,trackio}", help="Send settings, log and scores to this tracker.")
checkpoint_seconds = option("--checkpoint-seconds", type=float, default=30.0, help="Seconds between two checkpoints.")
markdown = flag("--markdown", "Print it as Markdown.")


def print_markdown(headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[str] = ()) -> None:
    """Print a table in Markdown; columns of numbers are aligned to the right."""
    ruler = ["---:" if heading in numbers else "---" for heading in headings]
    for row in (headings, ruler, *rows):
        print(f"| {' | '.join(row)}".rstrip() + " |")


def listed(words: str | None) -> list[str]:
    """Split a comma-separated list."""
    return [word.strip() for word in (words or "").split(",") if word.strip()]


def runs_in(folders: Sequence[Path]) -> list[Run]:
    """Return the runs below some folders; raise an error if there is none."""
    is_default = list(folders) == [Path("runs")] and not Path("runs").is_dir()
    found = [] if is_default else gather(folders)
    if not found:
        places = ", ".join(map(str, folders))
        raise UserError(f"there are no runs in {places}; train one first: lddr train --dataset circles")
    return found


def chosen_runs(folders: Sequence[Path], where: Sequence[str]) -> list[Run]:
    """Return the runs below some folders that meet all conditions; raise an error if there is none."""
    found = runs_in(folders)
    chosen = matching(found, where)
    if not chosen:
        raise UserError(nothing_matched(found, where))
    return chosen


def nothing_matched(runs: Sequence[Run], where: Sequence[str]) -> str:
    """Return which condition no run meets, and the nearest value that some run has."""
    for text in where:
        if not matching(runs, [text]):
            condition = parse_condition(text)
            values = sorted({str(run.value(condition.name)) for run in runs})
            near = hint(condition.wanted, values) if condition.comparison in ("=", "==") else ""
            some = f"{condition.name} is {', '.join(values[:10])}{', …' * (len(values) > 10)}"
            return f"none of the {counted(len(runs), 'run')} has {text}; {near}{some}"
    return f"none of the {counted(len(runs), 'run')} meets all of: {', '.join(where)}"
