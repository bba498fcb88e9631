"""The models of the explorer, cached while they are in use."""

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from threading import Lock
from typing import Generic, TypeVar

from lddr.data.dataset import Dataset, datasets, stream
from lddr.data.pictures import pictures_among
from lddr.errors import UserError
from lddr.explorer.catalogue import GoneError
from lddr.explorer.open_model import OpenModel, posterior_of
from lddr.runs.folder import RunFolder
from lddr.trained import Trained

Key = TypeVar("Key", bound=Hashable)
Thing = TypeVar("Thing")


class SharedCache(Generic[Key, Thing]):
    """A cache of recently used things; concurrent requests for one thing make it once, and failures are not cached."""

    def __init__(self, make: Callable[[Key], Thing], limit: int) -> None:
        self._make, self._limit = make, limit
        self._things: OrderedDict[Key, Future[Thing]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key) -> Thing:
        with self._lock:
            promise = self._things.get(key)
            is_mine = promise is None
            if promise is None:
                promise = self._things[key] = Future()
            self._things.move_to_end(key)
            while len(self._things) > self._limit:
                self._things.popitem(last=False)
        if is_mine:
            self._keep(key, promise)
        return promise.result()

    def _keep(self, key: Key, promise: Future[Thing]) -> None:
        """Make the thing outside the lock, so that requests for other things need not wait."""
        try:
            promise.set_result(self._make(key))
        except BaseException as error:
            with self._lock:
                if self._things.get(key) is promise:
                    del self._things[key]
            promise.set_exception(error)

    def __len__(self) -> int:
        return len(self._things)


MOST_MODELS = 8  # cached in memory
DRAWN = 64  # images over which the KL of each latent is averaged
MOST_FILES = 3_000_000  # files below a folder of images


def opened(folder: Path, device: str = "auto") -> OpenModel:
    """Return the model of a folder, on a device; it is reloaded if its file has changed."""
    try:
        facts = RunFolder(folder).model_file.stat()
        if not S_ISREG(facts.st_mode):  # reading a pipe or a device may never end
            raise UserError("what should be the model of this run is no file")
    except OSError as error:
        if not RunFolder(folder).is_run:
            raise GoneError("this run is no longer there; go back to the runs and choose another") from error
        raise UserError("this run has no model yet: it is training or was stopped; see its metrics") from error
    return _models.get((folder, device, (facts.st_ino, facts.st_mtime_ns, facts.st_size)))


def _read(key: tuple[Path, str, tuple[int, ...]]) -> OpenModel:
    folder, device, _ = key
    trained = Trained.load(folder).to(device)
    try:
        dataset = images_of(RunFolder(folder))
        if dataset.image_shape != trained.image_shape:
            raise UserError(f"the model knows images {trained.image_shape}, these are {dataset.image_shape}")
    except (UserError, OSError, ValueError, TypeError, RuntimeError) as error:
        return OpenModel(trained, None, str(error), None)
    drawn = dataset.images(dataset.space.sample(stream(0, "explorer"), DRAWN))
    posterior = posterior_of(trained, drawn)
    moves = (posterior.mean != posterior.mean[0]).any(0).tolist()  # the KL of rounded latents does not show it
    return OpenModel(trained, dataset, None, posterior.kl.mean(0).tolist(), moves)


_models = SharedCache(_read, MOST_MODELS)


def images_of(run: RunFolder) -> Dataset:
    """Return the images of a run; a run may come from a stranger and name any path, so the path is checked first."""
    name, count = run.dataset_place, run.images.get("images")
    path = Path(name).expanduser()
    if name not in datasets and path.exists():
        _check_place(path, count if type(count) is int else 0, is_legacy=run.config.fit is None)
    return run.dataset


def _check_place(path: Path, count: int, is_legacy: bool) -> None:
    """Refuse anything but a file or a folder with at most `count` pictures, without walking far or reading any."""
    here = path.resolve()
    if not path.is_file() and (not path.is_dir() or here == Path(here.anchor) or Path.home().is_relative_to(here)):
        raise UserError(f"{path} is no place for the images of a run")
    most = min(10 * count + 10_000, MOST_FILES)  # the folder may contain other files than the pictures
    found = list(islice((name for _, folders, files in os.walk(path) for name in (*folders, *files)), most + 1))
    if len(found) > most or len(pictures_among(map(Path, found), is_legacy)) > count:
        raise UserError(f"{path} holds more than the {count:,} images of this run; put it back as it was")
