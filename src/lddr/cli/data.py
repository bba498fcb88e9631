"""`lddr data …`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg
from tyro.extras import SubcommandApp

from lddr.cli.app import LEFT_OUT, Name, Names, app
from lddr.data import FITS
from lddr.errors import UserError

if TYPE_CHECKING:
    from lddr.data.dataset import Dataset
    from lddr.data.official import Official

PICTURES = (".png", ".jpg", ".jpeg", ".webp")
HEADINGS = ("name", "images", "shape", "factors", "from")

data = SubcommandApp()
app.command(data, name="data", help="List, show, download and verify datasets.")


@data.command(name="list")
def list_(markdown: bool = False) -> None:
    """List the datasets: images, shape, factors, where they come from, and whether they are here.

    Args:
        markdown: Print it as Markdown, for a document.

    """
    from rich.console import Console

    from lddr.console import table

    if markdown:
        print(markdown_table())
        return
    shown = table(*HEADINGS, "here")
    shown.columns[1].justify = "right"
    for kind in _kinds():
        shown.add_row(*_facts(kind), _here(kind))
    Console().print(shown)
    Console().print("\nYour own images: give the path of a folder, .npz or .npy file instead of a name.", style="dim")


def markdown_table() -> str:
    """Return the same table for the README, without anything that depends on this machine."""
    rows = [
        HEADINGS,
        ("---", "---:", "---", "---", "---"),
        *((f"`{name}`", *rest) for name, *rest in map(_facts, _kinds())),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _kinds() -> list[type["Dataset"]]:
    """Return the datasets, those that need no files first."""
    from lddr.data.dataset import datasets

    return sorted((datasets[name] for name in datasets), key=lambda kind: (kind.needs_files, kind.name))


def _facts(kind: type["Dataset"]) -> tuple[str, ...]:
    shape = "x".join(map(str, kind.image_shape))
    return kind.name, f"{kind.space.size:,}", shape, str(kind.space), kind.origin


def _here(kind: type["Dataset"]) -> str:
    from lddr.data.official import Official

    found = kind.found() if issubclass(kind, Official) else []
    if found:
        return f"official file{'s' * (len(found) > 1)} in {found[0].parent}"
    return "no" if kind.needs_files else kind.origin.split(" or ")[0]


@data.command
def show(
    name: Name,
    out: Annotated[Path | None, arg(aliases=["-o"], metavar="FILE", help_behavior_hint=LEFT_OUT)] = None,
    seed: int = 0,
    resolution: Annotated[str | None, arg(metavar="PIXELS", help_behavior_hint=LEFT_OUT)] = None,
    fit: Annotated[str, arg(metavar=f"{{{','.join(FITS)}}}")] = FITS[0],
    background: Annotated[str, arg(metavar="COLOUR")] = "auto",
) -> None:
    """Draw a dataset as one picture: a row for each factor, that factor varied, and random images.

    Of your own images it says how they are read.

    Args:
        name: A dataset from `lddr data list`, or a folder, .npz or .npy file of your own images.
        out: Where to write the picture; NAME.png when left out.
        seed: Which random images to show.
        resolution: Pixels per side, or HEIGHTxWIDTH such as 48x96, where images can have several sizes.
        fit: How your own pictures get another aspect ratio.
        background: Colour behind your own pictures where they are transparent, and around padded ones.

    """
    from lddr.data.load import load_dataset
    from lddr.data.sheet import factor_sheet
    from lddr.files import written_whole

    if out is not None and out.suffix.lower() not in PICTURES:
        raise UserError(f"{out} has no suffix of a picture; end its name in {', '.join(PICTURES)}")
    dataset = load_dataset(name, resolution, fit, background)
    out = out or Path(f"{dataset.name}.png")
    with written_whole(out) as draft:
        factor_sheet(dataset, seed).save(draft)
    print(f"{dataset!r}, {dataset.origin}", *filter(None, [dataset.reading]), f"written: {out}", sep="\n")


@data.command
def download(
    names: Names, mirror: Annotated[str | None, arg(metavar="ADDRESS", help_behavior_hint=LEFT_OUT)] = None
) -> None:
    """Download official files: resumed when interrupted, checked before use.

    Args:
        names: Datasets from `lddr data list`.
        mirror: An address that holds the same files, instead of the official one.

    """
    from rich.filesize import decimal

    from lddr.data.download import bytes_left, fetch
    from lddr.data.official import download_folder

    folder = download_folder()
    kinds = _official(names)
    for kind in kinds:
        if not kind.remotes and not kind.found():
            raise UserError(kind.not_found())
    remotes = dict.fromkeys(remote for kind in kinds for remote in kind.remotes)
    absent = [remote for remote in remotes if not remote.is_there(folder)]
    if not absent:
        print(f"everything is there already, in {folder}")
        return
    size = bytes_left(absent, folder, mirror)
    words = "of unknown size" if size is None else decimal(size)
    print(f"{len(absent)} file{'s' * (len(absent) > 1)}, {words}, into {folder}")
    fetch(absent, folder, mirror)
    for remote in absent:
        if not remote.required:
            print(f"no checksum is known for today's {remote.path}: its length is all that can be checked")
    print(f"done; check it with: lddr data verify {' '.join(names)}")


@data.command
def verify(names: Names) -> None:
    """Check official files: against their published checksums, that they can be read, dSprites against its drawing.

    Args:
        names: Datasets from `lddr data list`.

    """
    from rich.console import Console

    from lddr.console import table

    wrong: dict[str, None] = {}
    shown = table("dataset", "file", "verdict")
    for kind in _official(names):
        for finding in kind.verify():
            shown.add_row(kind.name, str(finding.path), f"{'ok, ' * finding.is_right}{finding.words}")
            if not finding.is_right:
                wrong[kind.name] = None
    Console().print(shown)
    if wrong:
        raise UserError(f"remove what is wrong and get it again with: lddr data download {' '.join(wrong)}")


@data.command
def clean(yes: bool = False) -> None:
    """Remove what was converted once for faster reading; it is made again when it is needed.

    Args:
        yes: Do not ask first.

    """
    from rich.filesize import decimal

    from lddr.console import say
    from lddr.data.array_files import conversions

    there = {path: path.stat().st_size for path in conversions()}
    for path, size in there.items():
        print(f"{decimal(size):>9}  {path}")
    if not there:
        print("there is nothing to remove")
    elif yes or _agrees(f"remove all of it, {decimal(sum(there.values()))}? [y/N] "):
        for path in there:
            path.unlink(missing_ok=True)
        print("removed")
    else:
        say("nothing was removed")


def _agrees(question: str) -> bool:
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:  # stdin is closed, so there is no answer
        print()
        return False


def _official(names: tuple[str, ...]) -> list[type["Official"]]:
    from lddr.data.dataset import datasets
    from lddr.data.official import Official

    if not names:
        known = ", ".join(name for name in datasets if issubclass(datasets[name], Official))
        raise UserError(f"name at least one dataset: {known}")
    kinds = []
    for name in names:
        kind = datasets[name]
        if not issubclass(kind, Official):
            raise UserError(f"{name} is drawn here and needs no files")
        kinds.append(kind)
    return kinds
