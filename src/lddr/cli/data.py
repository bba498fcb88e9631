"""`lddr data …`."""

from pathlib import Path
from typing import Annotated

from tyro.conf import arg
from tyro.extras import SubcommandApp

from lddr.cli.app import Name, Names, app

data = SubcommandApp()
app.command(data, name="data", help="List, show, download and verify datasets.")


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
