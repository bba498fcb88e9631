"""From what a user types to a dataset: a name from the registry, or the path of their own images."""

import os
import posixpath
from pathlib import Path

from lddr.data.dataset import Dataset, datasets, stream
from lddr.errors import UserError

WARM = 64  # batches


def load_dataset(name: str, resolution: int | None = None) -> Dataset:
    """The dataset called `name`, or the images of the folder or .npz file `name`."""
    settings = {} if resolution is None else {"resolution": resolution}
    if is_path(name):
        from lddr.data.own_images import OwnImages

        dataset = OwnImages(Path(_expanded(name)), **settings)
        dataset.path = absolute(name)
        return dataset
    return datasets[name](**settings)


def one_name(name: str) -> str:
    """The same name for the same images: ./pics and pics/ are pics, unless that is another dataset or another place."""
    plain = posixpath.normpath(name)
    places = _expanded(name), _expanded(plain)
    is_one = is_path(name) and plain not in datasets and all(map(os.path.exists, places)) and os.path.samefile(*places)  # noqa: PTH121
    return plain if is_one else name


def absolute(name: str) -> str:
    """The name of a dataset as it is, and a path as it leads to the same images from every folder."""
    return os.path.abspath(_expanded(name)) if is_path(name) else name  # noqa: PTH100 (takes any name)


def _expanded(name: str) -> str:
    return os.path.expanduser(name)  # noqa: PTH111 (takes any name)


def warmed(dataset: Dataset) -> Dataset:
    """A dataset that has drawn what it keeps for later: a second of a training, but most of what a few steps take."""
    for batch in range(WARM):
        dataset.draw(stream(0, "warm", batch), 64)
    return dataset


def why_missing(name: str) -> str | None:
    """How to get a dataset that is not here, None for one that is."""
    try:
        if not is_path(name):
            return datasets[name].why_missing()
        load_dataset(name)
    except UserError as error:
        return str(error)
    return None


def is_path(name: str) -> bool:
    """Whether a user means their own images, not a dataset of this name."""
    return "/" in name or name.endswith(".npz") or (name not in datasets and os.path.exists(name))  # noqa: PTH110 (takes any name)
