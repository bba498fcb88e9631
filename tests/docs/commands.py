"""Commands of the docs, read by the real parser and looked into as far as that takes no time; none is carried out."""

from typing import Any

import click

from lddr.cli.app import app, listed, sentence
from lddr.errors import UserError


def check(words: list[str]) -> None:
    """Refuse, as the command itself would, what it cannot take: flags, settings, models, studies, metrics."""
    name, command, rest = _found(app, words[1:])
    if rest == ["--help"]:
        return
    try:
        given = command.make_context(name, rest).params
    except click.UsageError as error:
        raise UserError(sentence(error)) from error
    CHECKS.get(name, lambda **_: None)(**given)


def check_in_sentence(words: list[str]) -> None:
    """The same for a command in a sentence, which need not be whole: then its flags must be there."""
    try:
        check(words)
    except UserError:
        _, command, rest = _found(app, words[1:])
        known = {
            flag for each in command.get_params(click.Context(command)) for flag in each.opts + each.secondary_opts
        }
        for word in rest:
            if word.startswith("-") and word.partition("=")[0] not in known:
                raise KeyError(word) from None


def _found(commands: click.Group, words: list[str]) -> tuple[str, click.Command, list[str]]:
    if words in (["--version"], ["--help"]):
        return "lddr", commands, ["--help"]
    target, rest = commands.commands[words[0]], [word for word in words[1:] if word != "--debug"]
    if isinstance(target, click.Group):
        name, command, rest = _found(target, rest)
        return f"{words[0]} {name}", command, rest
    return words[0], target, rest


NOT_SETTINGS = ["out", "seeds", "device", "threads", "quiet", "compile", "tensorboard", "track", "checkpoint_seconds"]


def _train(pictures: str | None, dataset: str | None, model: str | None, preset: str, **given: Any) -> None:
    from lddr.config import configure

    settings = {name: value for name, value in given.items() if name not in NOT_SETTINGS}
    configure(model, pictures or dataset or "dsprites", preset, **settings)


def _sweep(study: str, preset: str, dataset: str | None, where: tuple[str, ...], **_: Any) -> None:
    from lddr.sweeps.study import read_study

    if study not in ("STUDY", "my-study.toml"):
        is_small = preset == "quick" or not study.endswith(
            ".toml"
        )  # a full study that is shipped has thousands of runs
        read_study(study, "quick" if is_small else "full", dataset, where)


def _score(metrics: str, **given: Any) -> None:
    from lddr.metrics.metric import choose_metrics, parse_metric_settings

    choose_metrics(metrics, parse_metric_settings(given.get("changes", ())))


def _select(by: str | None, where: tuple[str, ...], **_: Any) -> None:
    from lddr.runs.tables import parse_condition
    from lddr.selection.selector import find_selector

    for name in (by or "gap").split(","):
        find_selector(name)
    for condition in where:
        parse_condition(condition)


def _bench_models(models: str, dataset: str, preset: str, **_: Any) -> None:
    from lddr.config import configure

    for model in listed(models):
        configure(model, dataset, preset)


CHECKS: dict[str, Any] = {"train": _train, "sweep": _sweep, "evaluate": _score, "score": _score, "select": _select}
CHECKS |= {"bench models": _bench_models}
