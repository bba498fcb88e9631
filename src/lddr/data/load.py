"""From what a user gives to a dataset: a name from the registry, or their own images from a path or from Python."""

import os
import posixpath
from pathlib import Path
from typing import Any

from lddr.console import say
from lddr.data import allowed_size, height_and_width
from lddr.data.dataset import Dataset, datasets, stream
from lddr.errors import UserError

WARM = 64  # batches


def load_dataset(
    name: str, resolution: int | str | None = None, fit: str | None = "pad", background: str = "auto"
) -> Dataset:
    """The dataset called `name`, or the images of the folder, .npz or .npy file `name`.

    Parameters
    ----------
    name
        A name from `lddr data list`, or a path.
    resolution
        Pixels per side, or "HEIGHTxWIDTH". Without it datasets have their own; your own images keep their size, up to
        512 pixels a side, and pictures of several sizes become squares of up to 64.
    fit
        How your own pictures get another aspect ratio: `pad`, `crop` or `stretch`. `legacy`, or None, prepares them as
        versions without this setting did: stretched, on black, without regard to EXIF, and the upper eight of sixteen
        bits.
    background
        The colour behind transparent pictures of your own, and around padded ones: a name or #rrggbb. `auto` takes
        black or white, whichever shows the pictures better, and pads with the colour of each picture's edge.
    """
    if is_path(name):
        from lddr.data.own_images import OwnImages

        dataset = OwnImages(Path(_expanded(name)), resolution, fit, background)
        dataset.path = absolute(name)
        return dataset
    if fit not in (None, "pad") or background != "auto":
        raise as_it_is(name)
    size: dict[str, Any] = {}
    if resolution is not None:
        height, width = height_and_width(resolution)
        if height != width:
            raise UserError(f"{name} has square images, not {height}x{width}; give the resolution as one number")
        size["resolution"] = height
    return datasets[name](**size)


def as_dataset(
    given: Any,
    factors: Any = None,
    resolution: int | str | None = None,
    fit: str | None = "pad",
    background: str = "auto",
    quiet: bool = False,
) -> Dataset:
    """Images of any kind as a dataset.

    Parameters
    ----------
    given
        A name or a path as for `load_dataset`; a `Dataset`, which is taken as it is; an array, a memory map or a tensor
        of any framework; a map-style torch `Dataset` or a `DataLoader` of one, whose items are an image, (image,
        label, …) or a dict with "image"; or an iterable of such items or of batches of them. Torch datasets and
        iterables are read once, in order.
    factors
        Labels of an array of images, as for `lddr.train`. True takes those of a torch dataset, which are ignored
        otherwise.
    resolution, fit, background
        Those of `load_dataset`.
    quiet
        Say nothing about how the images are read.
    """
    images = indexed(given, quiet)
    if isinstance(images, str | Dataset):
        if factors is not None:
            raise UserError("factors are labels of an array of images; put those of a folder into its factors.csv")
        return images if isinstance(images, Dataset) else load_dataset(images, resolution, fit, background)
    from lddr.data.columns import factor_table_of
    from lddr.data.in_memory import ArrayDataset
    from lddr.data.items import Items
    from lddr.data.pictures import natural_size

    if isinstance(images, Items):
        size = allowed_size(resolution or natural_size(images.sizes))
        preparation = images.preparation(size, fit, background)
        rows, columns = images.read(preparation, with_labels=factors is True, quiet=quiet)
        if factors is None and images.has_labels and not quiet:
            say("the labels of this dataset are not used; factors=True takes them")
        table = columns if factors is True else factors
        space = None if table is None else factor_table_of(table, len(images))
        return ArrayDataset.of_rows(rows, preparation, images.all_sizes, space)
    if factors is True:
        raise UserError("an array has no labels of its own; give them as factors")
    space = None if factors is None else factor_table_of(factors, len(images) if images.ndim else 0)
    return ArrayDataset(images, space, resolution, fit, background)


def indexed(given: Any, quiet: bool = False) -> Any:
    """What `as_dataset` takes, in a form that can be asked for its size and read again: iterables are read here."""
    if isinstance(given, Path):
        return str(given)
    if isinstance(given, str | Dataset):
        return given
    from lddr.arrays import as_array
    from lddr.data.items import Items, as_items

    return given if isinstance(given, Items) else as_items(given, quiet) or as_array(given)


def as_it_is(name: str) -> UserError:
    """What to say when somebody wants to prepare the images of a dataset that has a name."""
    return UserError(f"{name} has images of its own; fit and background are for your own pictures, leave them out")


def own_size(given: Any) -> int | str | None:
    """The resolution that your own images, as `indexed` gives them, have unless one is set; None for other datasets."""
    from lddr.data.items import Items
    from lddr.data.pictures import arrangement, natural_size, size_of

    if isinstance(given, str):
        if not is_path(given) or not os.path.exists(_expanded(given)):  # noqa: PTH110 (takes any name)
            return None
        from lddr.data.own_images import source_of

        return natural_size(source_of(Path(_expanded(given))).sizes)
    if isinstance(given, Items):
        return natural_size(given.sizes)
    is_images = not isinstance(given, Dataset) and arrangement(given.shape) is not None
    return natural_size([size_of(given.shape)]) if is_images else None


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
    return "/" in name or name.endswith((".npz", ".npy")) or (name not in datasets and os.path.exists(name))  # noqa: PTH110 (takes any name)
