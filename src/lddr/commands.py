"""What `lddr train` and `lddr models` do."""

import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lddr.config import configure
from lddr.models.zoo import models
from lddr.runs.carry_out import Machine, run
from lddr.training.loop import Stopped


def list_models() -> None:
    """Print a table of all models."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("name", "model", "latent", "objective", "knobs", "values in the paper"):
        table.add_column(heading, overflow="fold")
    for name in sorted(models, key=lambda name: (models[name].latent != "gaussian", name)):
        model = models[name]
        knobs = ", ".join(f"{knob} {value:g}" for knob, value in model.knobs.items())
        grid = "; ".join(f"{knob} {', '.join(f'{v:g}' for v in values)}" for knob, values in model.grid.items())
        table.add_row(name, model.title, model.latent, model.objective, knobs, grid)
    Console().print(table)


def train_model(
    model: str,
    dataset: str,
    preset: str,
    out: Path,
    settings: dict[str, Any],
    machine: Machine,
) -> None:
    """Train, and say where the run is or how to go on."""
    config = configure(model, dataset, preset, **settings)
    try:
        folder = run(config, out, machine)
    except Stopped:
        print("lddr: stopped; start the same command again to go on", file=sys.stderr)
        sys.exit(130)
    print(folder)
