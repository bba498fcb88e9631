"""What `lddr data …` does: tables and pictures of datasets, downloads and checks."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from lddr.data.dataset import Dataset, datasets
from lddr.data.download import State, fetch, human_size, plan, verify
from lddr.data.load import load_dataset
from lddr.data.locations import data_folders, download_folder
from lddr.data.official.base import Official
from lddr.data.sheet import factor_sheet
from lddr.errors import UserError
from lddr.files import written_whole

PICTURES = (".png", ".jpg", ".jpeg", ".webp")
HEADINGS = ("name", "images", "shape", "factors", "from")


def list_datasets(markdown: bool) -> None:
    """Print a table of all datasets."""
    if markdown:
        print(markdown_table())
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in (*HEADINGS, "here"):
        table.add_column(heading, justify="right" if heading == "images" else "left", overflow="fold")
    for kind in _sorted():
        table.add_row(*_facts(kind), _here(kind))
    Console().print(table)
    Console().print("\nYour own images: give the path of a folder or an .npz file instead of a name.", style="dim")


def markdown_table() -> str:
    """The same table for the README, without what depends on this machine."""
    rows = [
        HEADINGS,
        ("---", "---:", "---", "---", "---"),
        *((f"`{name}`", *rest) for name, *rest in map(_facts, _sorted())),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _sorted() -> list[type[Dataset]]:
    return sorted((datasets[name] for name in datasets), key=lambda kind: (kind.needs_files, kind.name))


def _facts(kind: type[Dataset]) -> tuple[str, ...]:
    shape = "x".join(map(str, kind.image_shape))
    return kind.name, f"{kind.space.size:,}", shape, str(kind.space), kind.origin


def _here(kind: type[Dataset]) -> str:
    if not issubclass(kind, Official):
        return "yes"
    found = kind.found()
    return f"yes, in {found[0].parent}" if found else "no"


def show_dataset(name: str, out: Path | None, seed: int, resolution: int | None) -> None:
    """Write the dataset's picture and say where it is."""
    if out is not None and out.suffix.lower() not in PICTURES:
        raise UserError(f"cannot tell what kind of picture {out} is; end its name in {', '.join(PICTURES)}")
    dataset = load_dataset(name, resolution)
    out = out or Path(f"{dataset.name}.png")
    with written_whole(out) as draft:
        factor_sheet(dataset, seed).save(draft)
    print(repr(dataset), f"written: {out}", sep="\n")


def download_datasets(names: Sequence[str], mirror: str | None) -> None:
    """Fetch what is missing, after saying how much that is."""
    remotes = [remote for kind in _official(names) for remote in kind.remotes]
    folder = download_folder()
    ahead = plan(remotes, folder, mirror)
    count = len(ahead.absent) + len(ahead.partial)
    if not count:
        print(f"everything is there already, in {folder}")
        return
    size = "of unknown size" if ahead.size is None else human_size(ahead.size)
    print(f"{count} file{'s' * (count > 1)}, {size}, into {folder}")
    fetch(remotes, folder, mirror)
    print(f"done; check it with: lddr data verify {' '.join(names)}")


def verify_datasets(names: Sequence[str]) -> None:
    """Print what each file is worth; a file that is wrong or missing is a mistake to mend."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("dataset", "file", "verdict"):
        table.add_column(heading, overflow="fold")
    verdicts = [(kind.name, path, verdict) for kind in _official(names) for path, verdict in _verdicts(kind)]
    for name, path, verdict in verdicts:
        table.add_row(name, str(path), verdict)
    Console().print(table)
    bad = [name for name, _, verdict in verdicts if not verdict.startswith("ok")]
    if bad:
        raise UserError(
            f"remove what is wrong and get it again with: lddr data download {' '.join(dict.fromkeys(bad))}"
        )


def _verdicts(kind: type[Official]) -> list[tuple[Path, str]]:
    """The published checksums first; then whether the dataset can be opened, which checks every length and shape."""
    verdicts = []
    for remote in kind.remotes:
        folder = next((folder for folder in data_folders() if remote.is_there(folder)), download_folder())
        verdict = verify([remote], folder)[0]
        if verdict.state in (State.OK, State.WRONG):
            verdicts.append((verdict.path, "ok, checksum" if verdict.state is State.OK else "wrong checksum"))
    try:
        found = kind()
    except UserError as error:
        return [*verdicts, (download_folder() / kind.remotes[0].path, str(error))]
    return [*verdicts, (kind.found()[0].parent, f"ok, opens: {found.space.size} images")]


def _official(names: Sequence[str]) -> list[type[Official]]:
    if not names:
        raise UserError(
            f"name at least one dataset: {', '.join(n for n in datasets if issubclass(datasets[n], Official))}"
        )
    kinds = []
    for name in names:
        kind = datasets[name]
        if not issubclass(kind, Official):
            raise UserError(f"{name} is drawn here and needs no files")
        kinds.append(kind)
    return kinds
