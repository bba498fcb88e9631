"""`lddr data …`."""

from pathlib import Path
from typing import TYPE_CHECKING

from lddr import console
from lddr.cli.app import DATASET, argument, flag, group, markdown, one_of, option, out_file, print_markdown
from lddr.console import counted
from lddr.data import FITS
from lddr.errors import UserError

if TYPE_CHECKING:
    from lddr.data.dataset import Dataset
    from lddr.data.official import Official

PICTURES = (".png", ".jpg", ".jpeg", ".webp")

data = group("data", "List, show, download and verify datasets.")
names = argument("names", "NAME...", nargs=-1, help="Datasets from `lddr data list`.")


@data.command(name="list")
@markdown
def list_datasets(markdown: bool) -> None:
    """List the datasets with their sizes and factors, and whether they are here."""
    from lddr.data.dataset import datasets

    headings = ("name", "images", "shape", "factors", "from")
    kinds = sorted((datasets[name] for name in datasets), key=lambda kind: (kind.needs_files, kind.name))
    facts = [
        (kind.name, f"{kind.space.size:,}", "x".join(map(str, kind.image_shape)), str(kind.space), kind.origin)
        for kind in kinds
    ]
    if markdown:  # without anything that depends on this machine
        print_markdown(headings, [(f"`{name}`", *rest) for name, *rest in facts], numbers=["images"])
        return
    table = console.table(*headings, "here")
    table.columns[1].justify = "right"
    for kind, row in zip(kinds, facts, strict=True):
        table.add_row(*row, _here(kind))
    console.show(table)
    console.show("\nYour own images: give the path of a folder, .npz or .npy file instead of a name.", style="dim")


def _here(kind: type["Dataset"]) -> str:
    from lddr.data.official import Official

    found = kind.found() if issubclass(kind, Official) else []
    if found:
        return f"official file{'s' * (len(found) > 1)} in {found[0].parent}"
    return "no" if kind.needs_files else kind.origin.split(" or ")[0]


@data.command()
@argument("name", "NAME", help=DATASET)
@out_file("Where to write the picture.  [default: NAME.png]")
@option("--seed", type=int, default=0, help="Which random images to show.")
@option("--resolution", metavar="PIXELS", help="Pixels per side, or HEIGHTxWIDTH such as 48x96.")
@option("--fit", **one_of(*FITS), default=FITS[0], help="How your own pictures get another aspect ratio.")
@option(
    "--background",
    metavar="COLOUR",
    default="auto",
    help="Colour behind your own pictures where they are transparent, and around padded ones.",
)
def show(name: str, out: Path | None, seed: int, resolution: str | None, fit: str, background: str) -> None:
    """Draw a dataset as one picture: each factor varied, and random images.

    For your own images it also prints how they are read.
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
    print(f"{dataset!r}, {dataset.origin}", *filter(None, [dataset.reading]), f"written to {out}", sep="\n")


@data.command()
@names
@option("--mirror", metavar="ADDRESS", help="An address that holds the same files, instead of the official one.")
def download(names: tuple[str, ...], mirror: str | None) -> None:
    """Download official files; interrupted downloads resume, and files are checked before use."""
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
    print(f"{counted(len(absent), 'file')}, {words}, into {folder}")
    fetch(absent, folder, mirror)
    for remote in absent:
        if not remote.required:
            print(f"no checksum is known for today's {remote.path}: its length is all that can be checked")
    print(f"done; check it with: lddr data verify {' '.join(names)}")


@data.command()
@names
def verify(names: tuple[str, ...]) -> None:
    """Check official files: checksums, that they can be read, and dSprites against its drawing."""
    wrong: dict[str, None] = {}
    table = console.table("dataset", "file", "verdict")
    for kind in _official(names):
        for finding in kind.verify():
            table.add_row(kind.name, str(finding.path), f"{'ok, ' * finding.is_right}{finding.words}")
            if not finding.is_right:
                wrong[kind.name] = None
    console.show(table)
    if wrong:
        raise UserError(f"remove what is wrong and get it again with: lddr data download {' '.join(wrong)}")


@data.command()
@flag("--yes", "Do not ask first.")
def clean(yes: bool) -> None:
    """Remove cached conversions of datasets, which are made again when needed."""
    from rich.filesize import decimal

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
        console.say("nothing was removed")


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
