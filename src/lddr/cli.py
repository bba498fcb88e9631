"""The `lddr` command: parse and dispatch, nothing else; what a command needs is imported when it runs."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg
from tyro.extras import SubcommandApp

from lddr.errors import UserError

DESCRIPTION = """Learn, score and choose disentangled discrete representations.

Every command explains itself with --help. --debug, anywhere, shows the traceback of an error."""

app, data, bench = SubcommandApp(), SubcommandApp(), SubcommandApp()
app.command(data, name="data", help="List, show, download and verify datasets.")
app.command(bench, name="bench", help="Measure speed and memory side by side with the usual way.")

Names = Annotated[Positional[tuple[str, ...]], arg(metavar="NAME...")]
LEFT_OUT = "(default: the preset's)"
Number = Annotated[float | None, arg(metavar="FLOAT", help_behavior_hint=LEFT_OUT)]
Whole = Annotated[int | None, arg(metavar="INT", help_behavior_hint=LEFT_OUT)]
Precision = Annotated[Literal["fp32", "bf16"] | None, arg(metavar="{fp32,bf16}", help_behavior_hint=LEFT_OUT)]
Kernels = Annotated[tuple[int, int, int, int] | None, arg(metavar="INT INT INT INT", help_behavior_hint=LEFT_OUT)]
Name = Annotated[Positional[str], arg(metavar="NAME")]


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
}
NOT_SETTINGS |= {"quiet"}


@app.command
def demo(out: Annotated[Path, arg(metavar="FOLDER")] = Path("demo"), steps: Whole = None) -> None:
    """Draw every built-in dataset, train a VAE and a D-VAE on circles, and draw their latent spaces.

    Args:
        out: The folder for the pictures and the two runs.
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
    dataset: str = "sprites",
    preset: Literal["paper", "quick"] = "paper",
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("runs"),
    seed: Whole = None,
    steps: Whole = None,
    batch_size: Whole = None,
    learning_rate: Number = None,
    precision: Precision = None,
    resolution: Annotated[int | None, arg(metavar="PIXELS")] = None,
    width: Whole = None,
    kernels: Kernels = None,
    decoder: Annotated[
        Literal["deconvolution", "broadcast"] | None,
        arg(metavar="{deconvolution,broadcast}", help_behavior_hint=LEFT_OUT),
    ] = None,
    num_latents: Whole = None,
    num_categories: Whole = None,
    low: Number = None,
    high: Number = None,
    noise_start: Number = None,
    noise_end: Number = None,
    beta: Number = None,
    gamma: Number = None,
    capacity: Number = None,
    capacity_weight: Number = None,
    capacity_steps: Whole = None,
    covariance_weight: Number = None,
    diagonal_ratio: Number = None,
    discriminator_width: Whole = None,
    discriminator_learning_rate: Number = None,
    supervision: Annotated[
        Literal["bce", "l2", "cross-entropy", "masked"] | None,
        arg(metavar="{bce,l2,cross-entropy,masked}", help_behavior_hint="(default: none)"),
    ] = None,
    labels: Whole = None,
    omega: Number = None,
    label_seed: Whole = None,
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
    from lddr.run import Machine
    from lddr.training.loop import Pace

    machine = Machine(device, threads, compile, Pace(quiet, tensorboard, checkpoint_seconds))
    train_model(model, dataset, preset, out, settings, machine)


@data.command(name="list")
def list_(markdown: bool = False) -> None:
    """List the datasets: images, shape, factors, where they come from, and whether they are here.

    Args:
        markdown: Print it as Markdown, for a document.

    """
    from lddr.data.commands import list_datasets

    list_datasets(markdown)


@data.command
def show(
    name: Name,
    out: Annotated[Path | None, arg(aliases=["-o"], metavar="FILE")] = None,
    seed: int = 0,
    resolution: Annotated[int | None, arg(metavar="PIXELS")] = None,
) -> None:
    """Draw a dataset as one picture: a row for each factor, that factor varied, and random images.

    Args:
        name: A dataset from `lddr data list`, or a folder or .npz file of your own images.
        out: Where to write the picture; NAME.png when left out.
        seed: Which random images to show.
        resolution: Pixels per side, where the dataset can be drawn at several.

    """
    from lddr.data.commands import show_dataset

    show_dataset(name, out, seed, resolution)


@data.command
def download(names: Names, mirror: Annotated[str | None, arg(metavar="ADDRESS")] = None) -> None:
    """Download official files: resumed when interrupted, checked before use.

    Args:
        names: Datasets from `lddr data list`.
        mirror: An address that holds the same files, instead of the official one.

    """
    from lddr.data.commands import download_datasets

    download_datasets(names, mirror)


@data.command
def verify(names: Names) -> None:
    """Check official files against their published checksums, and that they can be read.

    Args:
        names: Datasets from `lddr data list`.

    """
    from lddr.data.commands import verify_datasets

    verify_datasets(names)


@bench.command(name="data")
def bench_data(batches: int = 200, out: Annotated[Path | None, arg(metavar="FILE")] = None) -> None:
    """Images per second in batches of 64, ours beside one Python call per image, and the memory of each.

    Args:
        batches: How many batches of ours to time in each repeat.
        out: Also write the table as JSON here.

    """
    from lddr.bench.data import run_bench

    run_bench(batches, out)


@bench.command(name="train")
def bench_train(steps: int = 5, threads: int = 1, out: Annotated[Path | None, arg(metavar="FILE")] = None) -> None:
    """Training steps, ours in fp32 and bf16 beside plain PyTorch and beside the limit of the processor.

    Args:
        steps: How many steps to time in each repeat.
        threads: CPU threads.
        out: Also write the table as JSON here.
    """
    from lddr.bench.train import run_bench

    run_bench(steps, threads, out)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user's mistake is one sentence on stderr and exit code 2."""
    given = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in given
    try:
        app.cli(prog="lddr", description=DESCRIPTION, args=[word for word in given if word != "--debug"])
    except UserError as error:
        if debug:
            raise
        print(f"lddr: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("lddr: stopped", file=sys.stderr)
        sys.exit(130)
