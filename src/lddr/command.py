"""The command that makes a run again, word by word."""

from typing import Any

from lddr.config import Config, configure
from lddr.data.dataset import datasets
from lddr.presets import PRESETS
from lddr.settings import rules_of


def train_words(config: Config, without: tuple[str, ...] = ()) -> list[str]:
    """The words of the `lddr train` that makes this run, from the preset that needs fewest flags."""
    flags = {preset: found for preset in PRESETS if (found := _flags(config, preset)) is not None}
    preset = min(flags, key=lambda preset: len(flags[preset]))
    words = ["lddr", "train", "--model", config.model, "--dataset", config.dataset]
    words += ["--preset", preset]
    words += ["--likelihood", config.likelihood.name] if config.likelihood.name != "bernoulli" else []
    words += ["--supervision", config.supervision.loss] if config.supervision else []
    for name, value in flags[preset].items():
        words += [] if name in without else _flag(name.replace("_", "-"), value)
    return words


def _flags(config: Config, preset: str) -> dict[str, Any] | None:
    """The settings that a preset does not give; None if it gives one that cannot be taken back.

    What it gives may depend on the resolution.
    """
    loss = config.supervision.loss if config.supervision else None
    usual, at_this = (
        configure(
            config.model,
            config.dataset,
            preset,
            supervision=loss,
            likelihood=config.likelihood.name,
            resolution=resolution,
        ).flat()
        for resolution in (None, config.resolution)
    )
    usual = at_this | {"resolution": usual["resolution"]}
    own = {name: getattr(part, name) for part in config.parts.values() for name in rules_of(part)}
    own["fit"] = config.fit or ("legacy" if usual["fit"] else None)
    flags = {name: value for name, value in own.items() if value != usual[name]}
    if config.supervision and config.dataset not in datasets:  # whose default depends on how many images are labelled
        flags["labels"] = config.supervision.labels
    return None if None in flags.values() else flags


def _flag(name: str, value: Any) -> list[str]:
    """A setting as it is written on the command line, with every digit."""
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if isinstance(value, tuple):
        return [f"--{name}", ",".join(map(str, value))]
    return [f"--{name}", repr(value) if isinstance(value, float) else str(value)]
