"""Commands of the docs, read by the real parser and looked into as far as that takes no time; none is carried out."""

import functools
import warnings
from importlib import import_module
from typing import Any

import tyro
from tyro.extras import SubcommandApp

from lddr.cli.app import app, listed


def check(words: list[str]) -> None:
    """Refuse, as the command itself would, what it cannot take: flags, settings, models, studies, metrics."""
    if words[1:] in (["--version"], ["--help"]) or "--tyro-write-completion" in words:
        return
    import_module("lddr.cli.train").know_settings()
    name, command, rest = _found(app, words[1:])

    @functools.wraps(command)
    def taken(**arguments: Any) -> dict[str, Any]:
        return arguments

    if rest == ["--help"]:
        return
    given = tyro.cli(taken, args=rest, prog=f"lddr {name}", console_outputs=False)
    CHECKS.get(name, lambda **_: None)(**given)


def check_in_sentence(words: list[str]) -> None:
    """The same for a command in a sentence, which need not be whole: then its flags must be there."""
    try:
        check(words)
    except SystemExit:
        _check_flags(words)


def _check_flags(words: list[str]) -> None:
    import_module("lddr.cli.train").know_settings()
    _, command, rest = _found(app, words[1:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        parser = tyro.extras.get_parser(command)
    known = {flag for action in parser._actions for flag in action.option_strings} | {"--debug"}
    for word in rest:
        if word.startswith("-") and word.partition("=")[0] not in known:
            raise KeyError(word)


def _found(commands: SubcommandApp, words: list[str]) -> tuple[str, Any, list[str]]:
    target = commands._subcommands[words[0]].target
    if isinstance(target, SubcommandApp):
        name, command, rest = _found(target, words[1:])
        return f"{words[0]} {name}", command, rest
    return words[0], target, words[1:]


def _train(settings: Any, model: str, latent: str, objective: str, preset: str, **given: Any) -> None:
    from lddr.config import configure

    images = given["pictures"] or given["dataset"] or "dsprites"
    configure(model, images, preset, latent=latent, objective=objective, **vars(settings))


def _sweep(study: str, scale: Any, dataset: str | None, only: tuple[str, ...], **_: Any) -> None:
    from lddr.sweeps.study import read_study

    if study not in ("STUDY", "my-study.toml"):
        shipped = not study.endswith(".toml")
        read_study(
            study, "quick" if shipped else scale, dataset, only
        )  # a full study that is shipped has thousands of runs


def _score(metrics: str, **given: Any) -> None:
    from lddr.metrics.metric import choose_metrics, parse_metric_settings

    choose_metrics(metrics, parse_metric_settings(given.get("set", ())))


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
