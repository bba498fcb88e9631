"""`lddr demo`, `lddr models` and `lddr train`."""

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

from lddr.cli.app import LEFT_OUT, Folder, Whole, app

Number = Annotated[float | None, arg(metavar="FLOAT", help_behavior_hint=LEFT_OUT)]
Setting = Annotated[int | None, arg(metavar="INT", help_behavior_hint=LEFT_OUT)]
Precision = Annotated[Literal["fp32", "bf16"] | None, arg(metavar="{fp32,bf16}", help_behavior_hint=LEFT_OUT)]
Kernels = Annotated[tuple[int, int, int, int] | None, arg(metavar="INT INT INT INT", help_behavior_hint=LEFT_OUT)]

# what `lddr train` takes besides the settings of a run
NOT_SETTINGS = {
    "model",
    "dataset",
    "preset",
    "out",
    "device",
    "threads",
    "compile",
    "tensorboard",
    "checkpoint_seconds",
    "quiet",
}


@app.command
def demo(out: Folder = Path("demo"), steps: Setting = None) -> None:
    """Draw every built-in dataset, train a few VAEs and D-VAEs on circles, and make a report of them.

    Args:
        out: The folder for the pictures, the runs and the report.
        steps: Training steps of each model.
    """
    from lddr.demo import run_demo

    run_demo(out, steps)


@app.command(name="models")
def models_() -> None:
    """List the models: their latents, objectives, knobs with defaults, and the values the paper tries."""
    from lddr.commands import list_models

    list_models()


@app.command
def train(
    model: str = "dvae",
    dataset: str = "dsprites",
    preset: Literal["paper", "quick"] = "paper",
    out: Folder = Path("runs"),
    seed: Setting = None,
    steps: Setting = None,
    batch_size: Setting = None,
    learning_rate: Number = None,
    precision: Precision = None,
    resolution: Annotated[int | None, arg(metavar="PIXELS")] = None,
    width: Setting = None,
    kernels: Kernels = None,
    decoder: Annotated[
        Literal["deconvolution", "broadcast"] | None,
        arg(metavar="{deconvolution,broadcast}", help_behavior_hint=LEFT_OUT),
    ] = None,
    initialiser: Annotated[
        Literal["truncated", "uniform"] | None,
        arg(metavar="{truncated,uniform}", help_behavior_hint=LEFT_OUT),
    ] = None,
    num_latents: Setting = None,
    num_categories: Setting = None,
    low: Number = None,
    high: Number = None,
    noise_start: Number = None,
    noise_end: Number = None,
    beta: Number = None,
    gamma: Number = None,
    capacity: Number = None,
    capacity_weight: Number = None,
    capacity_steps: Setting = None,
    covariance_weight: Number = None,
    diagonal_ratio: Number = None,
    discriminator_width: Setting = None,
    discriminator_learning_rate: Number = None,
    supervision: Annotated[
        Literal["bce", "l2", "cross-entropy", "masked"] | None,
        arg(metavar="{bce,l2,cross-entropy,masked}", help_behavior_hint="(default: none)"),
    ] = None,
    labels: Setting = None,
    omega: Number = None,
    label_seed: Setting = None,
    device: str = "auto",
    threads: Whole = None,
    compile: bool = False,  # noqa: A002
    tensorboard: bool = False,
    checkpoint_seconds: float = 30.0,
    quiet: bool = False,
) -> None:
    """Train a model in a folder of its own, or go on with it: started again, a run continues exactly where it was.

    What is left out has the value of the preset, else the paper's.

    Args:
        model: A name from `lddr models`.
        dataset: A name from `lddr data list`, or a folder or .npz file of your own images.
        preset: The paper's settings, or quick ones for a laptop.
        out: Where the run's folder goes.
        seed: Decides the weights, the batches and the noise.
        steps: Training steps; the noise schedule is stretched over them.
        batch_size: Images per step.
        learning_rate: Adam's.
        precision: bf16 computes the networks in bfloat16; weights stay in float32.
        resolution: Pixels per side, where the dataset can be drawn at several.
        width: Channels of the first convolution; all others follow.
        kernels: Of the encoder's four convolutions; 4 4 2 2 is what the authors' code has.
        decoder: The broadcast decoder is the paper's for circles.
        initialiser: How the weights begin: the authors' truncated normal, or torch's uniform.
        num_latents: How many latents.
        num_categories: Categorical latents: how many categories each.
        low: Categorical latents: position of the first category.
        high: Categorical latents: position of the last category.
        noise_start: Categorical latents: scale of the Gumbel noise at the first step.
        noise_end: Categorical latents: scale of the Gumbel noise at the last step.
        beta: Weight of the KL (beta-…) or of the total correlation (…tc…).
        gamma: Weight of the total correlation (factor-…).
        capacity: Final capacity in nats (annealed-…).
        capacity_weight: Weight of the distance from the capacity (annealed-…).
        capacity_steps: Steps until the capacity is reached (annealed-…).
        covariance_weight: Weight of the off-diagonal covariances (dip-…).
        diagonal_ratio: Weight of the diagonal, as a multiple (dip-…).
        discriminator_width: Units in each of its six layers (factor-…).
        discriminator_learning_rate: Adam's, for the discriminator (factor-…).
        supervision: Loss on a few labelled images; bce and l2 for Gaussian, the others for categorical latents.
        labels: How many labelled images; nine of ten train, the tenth validates.
        omega: Weight of the supervision.
        label_seed: Decides which images are labelled.
        device: cpu, cuda, mps, or auto for the best there is.
        threads: CPU threads; all cores when left out.
        compile: Let torch compile the networks; pays for itself in long runs on a GPU.
        tensorboard: Write event files too.
        checkpoint_seconds: Seconds between two checkpoints.
        quiet: Show no progress.
    """
    settings = {name: value for name, value in locals().items() if name not in NOT_SETTINGS}
    from lddr.commands import train_model
    from lddr.runs.carry_out import Machine
    from lddr.training.loop import Pace

    machine = Machine(device, threads, compile, Pace(quiet, tensorboard, checkpoint_seconds))
    train_model(model, dataset, preset, out, settings, machine)
