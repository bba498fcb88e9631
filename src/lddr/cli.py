"""The `lddr` command: parse and dispatch, nothing else; what a command needs is imported when it runs."""

import sys
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg
from tyro.extras import SubcommandApp

from lddr.errors import UserError

DESCRIPTION = """Learn, score and choose disentangled discrete representations.

Every command explains itself with --help. --debug, anywhere, shows the traceback of an error."""

app, data, bench = SubcommandApp(), SubcommandApp(), SubcommandApp()
app.command(data, name="data", help="List, show, download and verify datasets.")
app.command(bench, name="bench", help="Measure speed and memory side by side with the usual way.")

Names = Annotated[Positional[tuple[str, ...]], arg(metavar="NAME...")]
Name = Annotated[Positional[str], arg(metavar="NAME")]


@app.command
def demo(out: Path = Path("demo")) -> None:
    """Draw every built-in dataset: a picture and a short summary.

    Args:
        out: The folder for the pictures.

    """
    from lddr.demo import run_demo

    run_demo(out)


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
