"""From what a user types to a dataset: a name from the registry, or the path of their own images."""

import os
import posixpath
from pathlib import Path

from lddr.data.dataset import Dataset, datasets, stream
from lddr.errors import UserError

WARM = 64  # batches


def load_dataset(
    name: str, resolution: int | None = None, fit: str | None = "pad", background: str = "auto"
) -> Dataset:
    """The dataset called `name`, or the images of the folder, .npz or .npy file `name`.

    Parameters
    ----------
    name
        A name from `lddr data list`, or a path.
    resolution
        Pixels per side. Without it datasets have their own; your own images keep their size where a network takes it,
        and else get the nearest one.
    fit
        How your own pictures become square: `pad`, `crop` or `stretch`. `legacy`, or None, prepares them as versions
        without this setting did: stretched, on black, without regard to EXIF, and the upper eight of sixteen bits.
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
    return datasets[name](**({} if resolution is None else {"resolution": resolution}))


def as_it_is(name: str) -> UserError:
    """What to say when somebody wants to prepare the images of a dataset that has a name."""
    return UserError(f"{name} has images of its own; fit and background are for your own pictures, leave them out")


def own_side(name: str) -> int | None:
    """The side that your own images are brought to unless told otherwise; None for other datasets."""
    if not is_path(name) or not os.path.exists(_expanded(name)):  # noqa: PTH110 (takes any name)
        return None
    from lddr.data.own_images import source_of
    from lddr.data.pictures import natural_side

    return natural_side(source_of(Path(_expanded(name))).sizes)


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
