"""From what a user gives to a dataset: a name from the registry, or their own images from a path or from Python."""

import os
import posixpath
from pathlib import Path
from typing import Any

from lddr.data import allowed_size, height_and_width
from lddr.data.dataset import Dataset, datasets, stream
from lddr.errors import UserError

WARM_BATCHES = 64


def load_dataset(
    name: str, resolution: int | str | None = None, fit: str | None = "pad", background: str = "auto"
) -> Dataset:
    """Load a dataset by name, or your own images from a folder, an .npz or an .npy file.

    Parameters
    ----------
    name
        A name from `lddr data list`, or a path.
    resolution
        Pixels per side, or "HEIGHTxWIDTH". By default datasets have their own; your own images keep their size, up to
        512 pixels a side, and pictures of several sizes become squares of up to 64.
    fit
        How your own pictures get another aspect ratio: `pad`, `crop` or `stretch`. `legacy`, or None, prepares them as
        versions without this setting did: stretched, on black, without regard to EXIF, and the upper eight of sixteen
        bits.
    background
        The colour behind transparent pictures of your own, and around padded ones: a name or #rrggbb. `auto` takes
        black or white, whichever shows the pictures better, and pads with the colour of each picture's edge.

    Returns
    -------
    Dataset
        Images by number, and their factors.

    Raises
    ------
    UserError
        If there is no such dataset, or its files are missing or damaged; the message says what to do.

    Examples
    --------
    >>> import lddr
    >>> dataset = lddr.load_dataset("circles", resolution=32)
    >>> len(dataset), dataset.image_shape, dataset.space.names
    (1600, (32, 32, 1), ('x', 'y'))
    >>> image, factors = dataset[41]
    >>> factors
    array([1, 1])
    """
    if is_path(name):
        from lddr.data.pictures import OwnImages

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
    """Return images of any kind as a dataset.

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
        Print nothing about how the images are read.
    """
    images = indexed(given, quiet)
    if isinstance(images, str | Dataset):
        if factors is not None:
            raise UserError("factors are labels of an array of images; put those of a folder into its factors.csv")
        return images if isinstance(images, Dataset) else load_dataset(images, resolution, fit, background)
    from lddr.data.columns import factor_table_of
    from lddr.data.in_memory import ArrayDataset, Items
    from lddr.data.pictures import natural_size

    if isinstance(images, Items):
        size = allowed_size(resolution or natural_size(images.sizes))
        return ArrayDataset.of_items(images, factors, size, fit, background)
    if factors is True:
        raise UserError("an array has no labels of its own; give them as factors")
    space = None if factors is None else factor_table_of(factors, len(images) if images.ndim else 0)
    return ArrayDataset(images, space, resolution, fit, background)


def indexed(given: Any, quiet: bool = False) -> Any:
    """Return what `as_dataset` takes in a form that has a size and can be read again: iterables are read here."""
    if isinstance(given, str | Path | Dataset):
        return str(given) if isinstance(given, Path) else given
    from lddr.arrays import as_array
    from lddr.data.in_memory import Items, as_items

    return given if isinstance(given, Items) else as_items(given, quiet) or as_array(given)


def as_it_is(name: str) -> UserError:
    """Return the error for `fit` or `background` of a dataset that has a name."""
    return UserError(f"{name} has images of its own; fit and background are for your own pictures, leave them out")


def own_size(given: Any) -> int | str | None:
    """Return the default resolution of your own images, as `indexed` returns them; None for other datasets."""
    from lddr.data.in_memory import Items
    from lddr.data.pictures import natural_size, shape_of_images, source_of

    if isinstance(given, str):
        if not is_path(given) or not os.path.exists(_expanded(given)):  # noqa: PTH110 (takes any name)
            return None
        return natural_size(source_of(Path(_expanded(given))).sizes)
    if isinstance(given, Items):
        return natural_size(given.sizes)
    shape = None if isinstance(given, Dataset) else shape_of_images(given.shape)
    return natural_size([(shape[2], shape[1])]) if shape else None


def one_name(name: str) -> str:
    """Return the same name for the same images: ./pics and pics/ are pics, unless that is another dataset or place."""
    plain = posixpath.normpath(name)
    places = _expanded(name), _expanded(plain)
    is_one = is_path(name) and plain not in datasets and all(map(os.path.exists, places)) and os.path.samefile(*places)  # noqa: PTH121
    return plain if is_one else name


def absolute(name: str) -> str:
    """Return the name of a dataset as it is, and a path as it leads to the same images from every folder."""
    return os.path.abspath(_expanded(name)) if is_path(name) else name  # noqa: PTH100 (takes any name)


def _expanded(name: str) -> str:
    return os.path.expanduser(name)  # noqa: PTH111 (takes any name)


def warmed(dataset: Dataset) -> Dataset:
    """Return a dataset that has drawn what it caches: a second of a training, but most of the time of a few steps."""
    for batch in range(WARM_BATCHES):
        dataset.draw(stream(0, "warm", batch), 64)
    return dataset


def why_missing(name: str) -> str | None:
    """Say how to get a dataset that is not here; None for one that is."""
    try:
        if not is_path(name):
            return datasets[name].why_missing()
        load_dataset(name)
    except UserError as error:
        return str(error)
    return None


def is_path(name: str) -> bool:
    """Return whether a user means their own images, not a dataset of this name."""
    return "/" in name or name.endswith((".npz", ".npy")) or (name not in datasets and os.path.exists(name))  # noqa: PTH110 (takes any name)
