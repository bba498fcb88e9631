"""From what a user types to a dataset: a name from the registry, or the path of their own images."""

from pathlib import Path

from lddr.data.dataset import Dataset, datasets


def load_dataset(name: str, resolution: int | None = None) -> Dataset:
    """The dataset called `name`, or the images of the folder or .npz file `name`."""
    settings = {} if resolution is None else {"resolution": resolution}
    if _is_path(name):
        from lddr.data.own_images import OwnImages

        return OwnImages(Path(name).expanduser(), **settings)
    return datasets[name](**settings)


def _is_path(name: str) -> bool:
    return "/" in name or name.endswith(".npz") or (name not in datasets and Path(name).exists())
