"""The field's published datasets, read from their official files: one module per dataset, and what they share."""

import os
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import ArrayLike

from lddr.data.array_files import MappedImages, cache_folder
from lddr.data.dataset import Dataset, Images
from lddr.errors import UserError

SIDE = 64  # pixels: the height and width of all images of the benchmark


def download_folder() -> Path:
    """Return the folder for downloads: $LDDR_DATA, else the user's cache."""
    folder = os.environ.get("LDDR_DATA")
    return Path(folder).expanduser() if folder else cache_folder()


def data_folders() -> list[Path]:
    """Return the folders searched for dataset files, in order: $LDDR_DATA, $DISENTANGLEMENT_LIB_DATA, the cache."""
    named = (os.environ.get(name) for name in ("LDDR_DATA", "DISENTANGLEMENT_LIB_DATA"))
    return [Path(folder).expanduser() for folder in named if folder] + [cache_folder()]


def find(*names: str) -> Path | None:
    """Return the first of these files that exists below a data folder, the preferred name first."""
    paths = (folder / name for folder in data_folders() for name in names)
    return next((path for path in paths if path.exists()), None)


@dataclass(frozen=True)
class Remote:
    """A file on the web, at addresses that are tried in order, and its path below the data folder.

    With `members`, the file is a tar archive whose `members` folder is unpacked into the folder `path`.
    """

    path: str
    url: str
    checksum: str  # "sha256:…" or "md5:…"
    size: int | None = None  # bytes, where published
    members: str | None = None
    others: tuple[str, ...] = ()  # further addresses
    may_differ: bool = False  # its owners have replaced the file since, and the new checksum is unknown

    @property
    def required(self) -> str | None:
        """Return the checksum that a file must have."""
        return None if self.may_differ else self.checksum

    def addresses(self, mirror: str | None = None) -> tuple[str, ...]:
        """Return the addresses to download from: a mirror replaces everything before the file's own name."""
        return (self.url, *self.others) if mirror is None else (f"{mirror.rstrip('/')}/{self._name}",)

    def file(self, folder: Path) -> Path:
        """Return the path of the downloaded file; an archive is stored next to the folder it is unpacked into."""
        final = folder / self.path
        return final if self.members is None else final.with_name(self._name)

    def is_there(self, folder: Path) -> bool:
        """Return whether the file exists: only complete files get their final name, so checking that is enough."""
        final = folder / self.path
        return final.is_file() if self.members is None else final.is_dir() and any(final.iterdir())

    @property
    def _name(self) -> str:
        return PurePosixPath(urlsplit(self.url).path).name


class Finding(NamedTuple):
    """What `Official.verify` found out about a file or folder."""

    path: Path
    is_right: bool
    words: str


class Official(Dataset):
    """A dataset whose files were published: found below the data folders, in disentanglement_lib's layout."""

    origin = "official files"
    needs_files = True
    files: ClassVar[tuple[tuple[str, ...], ...]]  # every file that is needed, by each of its names, preferred first
    remotes: ClassVar[tuple[Remote, ...]] = ()
    address: ClassVar[str] = ""  # of files without remotes: Google Drive wants a browser

    def __init__(self, resolution: int = SIDE) -> None:
        if resolution != SIDE:
            raise UserError(f"{self.name} comes at {SIDE}x{SIDE} only; leave the resolution out")
        if missing := self.why_missing():
            raise UserError(missing)
        self.rows = self._open(self.found())

    @abstractmethod
    def _open(self, paths: list[Path]) -> MappedImages:
        """Map the images of these files, converting them first where necessary."""

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        return self.rows.take(indices)

    @classmethod
    def found(cls) -> list[Path]:
        """Return the files of this dataset on this machine; an empty list if one of them is missing."""
        paths = [path for names in cls.files if (path := find(*names))]
        return paths if len(paths) == len(cls.files) else []

    @classmethod
    def why_missing(cls) -> str | None:
        return cls.not_found() if cls.needs_files and not cls.found() else None

    @classmethod
    def not_found(cls) -> str:
        """Say which file is missing where, and how to get it."""
        missing = [names[0] for names in cls.files if not find(*names)]
        what = f"{missing[0]} of {cls.title}" if 0 < len(missing) < len(cls.files) else cls.title
        *others, last = map(str, data_folders())
        where = f"{', '.join(others)} or {last}" if others else last
        if not cls.remotes:
            how = f"download it with a browser from {cls.address}, and unpack it if it is an archive"
            return f"{what} not found under {where}; {how}, so that {download_folder()}/{missing[0]} exists"
        sizes = [remote.size for remote in cls.remotes if remote.size]
        size = f" ({sum(sizes) / 1e6:.0f} MB)" if len(sizes) == len(cls.remotes) else ""
        return f"{what} not found under {where}; get it with: lddr data download {cls.name}{size}"

    def compare_images(self) -> tuple[bool, str] | None:
        """Return whether the images are right, and what was found; None if there is nothing to compare them with."""
        return None

    @classmethod
    def verify(cls) -> Iterator[Finding]:
        """Check the published checksums, whether the files open (lengths and shapes), and the images where possible."""
        from lddr.data.download import has_checksum

        checked = False
        for remote in cls.remotes:
            folder = next((folder for folder in data_folders() if remote.is_there(folder)), download_folder())
            if (is_right := has_checksum(remote, folder)) is not None:
                checked = True
                yield Finding(folder / remote.path, is_right, "checksum" if is_right else "wrong checksum")
        if not cls.found():
            yield Finding(download_folder() / cls.files[0][0], False, cls.not_found())
            return
        where = cls.found()[0].parent
        try:
            dataset = cls()
            compared = dataset.compare_images()
        except UserError as error:
            yield Finding(where, False, str(error))
            return
        only = "" if checked else "; no checksum is known for it: that its length is right is all that could be checked"
        yield Finding(where, True, f"opens: {dataset.space.size} images{only}")
        if compared:
            yield Finding(where, *compared)
