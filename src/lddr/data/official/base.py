"""What all official datasets share: finding their files, saying how to get them, looking images up."""

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from lddr.data.array_files import MappedImages
from lddr.data.dataset import Dataset, Images
from lddr.data.download import Remote
from lddr.data.locations import data_folders, find
from lddr.errors import UserError

SIDE = 64  # pixels: the height and width of all images of the benchmark


class Official(Dataset):
    """A dataset whose files were published: found below the data folders, in disentanglement_lib's layout."""

    origin = "official files"
    needs_files = True
    files: ClassVar[
        tuple[tuple[str, ...], ...]
    ]  # every file that is needed, under each of its names, the preferred first
    remotes: ClassVar[tuple[Remote, ...]]

    def __init__(self, resolution: int = SIDE) -> None:
        if resolution != SIDE:
            raise UserError(f"{self.name} comes at {SIDE}x{SIDE} only; leave the resolution out")
        if missing := self.why_missing():
            raise UserError(missing)
        self.rows = self._open(self.found())

    @classmethod
    def found(cls) -> list[Path]:
        """The files of this dataset on this machine, or nothing when one of them is missing."""
        paths = [path for names in cls.files if (path := find(*names))]
        return paths if len(paths) == len(cls.files) else []

    @classmethod
    def why_missing(cls) -> str | None:
        return cls.not_found() if cls.needs_files and not cls.found() else None

    def look_closer(self) -> tuple[bool, str] | None:
        """Whether the images themselves are right, and what was found; nothing where nothing is known of them."""
        return None

    @abstractmethod
    def _open(self, paths: list[Path]) -> MappedImages:
        """Map the images of these files, after a conversion where one is needed."""

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        return self.rows.take(indices)

    @classmethod
    def not_found(cls) -> str:
        """Which file is missing where, and how to get it."""
        missing = [names[0] for names in cls.files if not find(*names)]
        what = f"{missing[0]} of {cls.title}" if 0 < len(missing) < len(cls.files) else cls.title
        *others, last = map(str, data_folders())
        where = f"{', '.join(others)} or {last}" if others else last
        return f"{what} not found under {where}; get it with: lddr data download {cls.name}{cls._download_size()}"

    @classmethod
    def _download_size(cls) -> str:
        sizes = [remote.size for remote in cls.remotes if remote.size]
        return f" ({sum(sizes) / 1e6:.0f} MB)" if len(sizes) == len(cls.remotes) else ""
