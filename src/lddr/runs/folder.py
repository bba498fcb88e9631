"""A run is a folder: the names of its files, their content and how far the run got. This module alone knows them."""

import json
import os
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from lddr.data import as_resolution
from lddr.errors import UserError, hint
from lddr.files import alone, check_writable, content_of, in_one_line, reading_untrusted, reason_of, write_json
from lddr.hardware import MOST_THREADS

if TYPE_CHECKING:
    from lddr.config import Config
    from lddr.data.dataset import Dataset

Content = dict[str, Any]  # of a JSON file
State = Literal["finished", "training", "broken"]
Stamp = list[int]  # inode, time of change, size of config.json and scores.json; whether the other files exist

FORMAT = 2  # of config.json and of the settings saved with weights; a file without a number has format 1
CONFIG, SCORES, LOG, MODEL = "config.json", "scores.json", "log.jsonl", "model.safetensors"
CARD, SAMPLES = "README.md", "samples.png"  # of a shared model: its card, and a few images of its training set
NEEDED = (CONFIG, LOG, MODEL, SCORES)  # of a finished run
LARGEST_JSON = 64 << 20  # bytes
TAIL = 4096  # bytes at the end of a log that hold its last line
PRETRAINED = Path(__file__).parents[1] / "pretrained"  # finished runs that ship with lddr
LIST_PRETRAINED = "lddr models --pretrained"

_COMPARED = ("checksum", "content", "factors")  # of the images; older runs may have kept fewer
_OTHER_IMAGES = "put them back, or move that folder away (or give another --out) and train on these"
_IN_MEMORY = re.compile("array-[0-9a-f]{8}")  # what lddr.data.in_memory calls images that are in no file
_ENTRY_TYPES = {"settings": dict, "reason": str, "warning": str, "factors_left_out": dict}  # of a metric


class BrokenRunError(UserError):
    """A file of a run cannot be used; `reason` says why, without the folder and what to do."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is damaged: {reason}; move that folder away and train again")
        self.reason = f"{path.name} {reason}"


class RunFolder:
    """The folder of a run. Every property reads the files anew, since they change while a run trains."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config_file, self.scores_file = self.path / CONFIG, self.path / SCORES
        self.log_file, self.model_file = self.path / LOG, self.path / MODEL
        self.samples_file = self.path / SAMPLES
        self.discriminator_file = self.path / "discriminator.safetensors"  # separate: it is large, and few need it
        self.checkpoints, self.tensorboard = self.path / "checkpoint", self.path / "tensorboard"
        self.tracking_file = self.path / "tracking.json"  # the run's identity in each tracker, and the last step sent
        self.error_file = self.path / "error.txt"  # the last traceback of a sweep's worker

    def __str__(self) -> str:
        return str(self.path)

    @property
    def is_run(self) -> bool:
        """Whether the folder has settings, so that it is a run at all."""
        return self.config_file.exists()

    @property
    def missing(self) -> list[str]:
        """The files that a finished run has and this one lacks."""
        return [name for name in NEEDED if not (self.path / name).is_file()]

    @property
    def is_finished(self) -> bool:
        return not self.missing

    @property
    def state(self) -> State:
        """Return how far it is; scores are written last, so a run with scores that lacks other files is broken."""
        if self.is_finished:
            return "finished"
        return "broken" if self.scores_file.exists() or not self.is_run else "training"

    def require(self, *names: str) -> None:
        """Raise UserError if one of these files was removed while the run trained."""
        for name in names:
            if not (self.path / name).is_file():
                raise UserError(f"{self.path / name} has vanished while it trained; start the same command again")

    @property
    def last_step(self) -> int:
        """The step of the last whole line of the log; 0 before the first."""
        if not self.log_file.is_file():
            return 0
        with suppress(OSError), self.log_file.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL))
            records = map(record_of, reversed(log.read().splitlines(keepends=True)))
            return next((record["step"] for record in records if record is not None), 0)
        return 0

    @property
    def saved_step(self) -> int | None:
        """The step of the newest checkpoint."""
        names = (file.stem for file in self.checkpoints.glob("*.safetensors"))
        return max((int(name) for name in names if name.isdecimal()), default=None)

    @property
    def facts(self) -> Content:
        """The content of config.json in today's format: "settings", and in most runs "versions" and "dataset"."""
        if not self.is_run:
            raise UserError(f"{self} is no run: it has no {CONFIG}")
        return upgraded(_read_object(self.config_file, "settings", "versions", "dataset"), self.config_file)

    @property
    def config(self) -> "Config":
        from lddr.config import Config

        with reading_untrusted(self.config_file, "the settings of a run", "move that folder away and train again"):
            return Config.from_dict(self.facts["settings"])

    @property
    def versions(self) -> Content:
        """The versions of lddr, torch and Python that trained it; empty if they were not kept."""
        with suppress(UserError):
            return self.facts.get("versions", {})
        return {}

    @property
    def threads(self) -> int | None:
        """The number of torch threads that the run started with; None if it was not kept."""
        known = str(self.versions.get("threads"))
        return int(known) if known.isdecimal() and 0 < int(known) <= MOST_THREADS else None

    @property
    def images(self) -> Content:
        """Name, number, shape, factors, checksum and path of its images, as far as they were kept."""
        return self.facts.get("dataset", {})

    @property
    def about(self) -> str:
        """The one-line description of a shipped model; empty for other runs."""
        return str(self.facts.get("about", ""))

    @property
    def dataset(self) -> "Dataset":
        """The images it was trained on, cached for other runs on them; different images are refused."""
        from lddr.data.dataset import datasets
        from lddr.data.load import absolute

        place = self.dataset_place
        is_own = place not in datasets and self.images.get("origin") == "your own"
        if is_own and not os.path.exists(absolute(place)):  # noqa: PTH110 (takes any name)
            raise UserError(self._why_no_images(place))
        _, resolution, fit, background = self.config.images
        match self.images.get("shape"):
            case [int(height), int(width), int()] if is_own and resolution is None:
                resolution = as_resolution(height, width)  # which size is the default depends on the version
        dataset = loaded(place, resolution, fit, background)
        self.check(dataset)
        return dataset

    @property
    def dataset_place(self) -> str:
        """The path that its images were read from if it still exists, else the name in its settings."""
        path = self.images.get("path")
        if isinstance(path, str) and os.path.exists(path):  # noqa: PTH110 (takes any name)
            return path
        return self.config.dataset

    def _why_no_images(self, place: str) -> str:
        if (self.path / CARD).exists():
            cure = f"if you have them, start lddr in the folder that holds them as {place}"
            return f"{self} was shared without the images that it was trained on; {cure}"
        in_python = f"score it there with lddr.evaluate(dataset, lddr.Trained.load({str(self)!r}))"
        if _IN_MEMORY.fullmatch(place):
            cure = f"{in_python}, or save the images as .npz and train on that"
            return f"{self} was trained on an array in Python, which is in no file; {cure}"
        where = f"the images that {self} was trained on are not at"
        if known := self.images.get("path"):
            return f"{where} {in_one_line(str(known))}; put them back"
        cure = "start lddr in the folder from which this path leads to them"
        return f"{where} {place}; {cure}, or, if they were given in Python, {in_python}"

    def check(self, dataset: "Dataset") -> None:
        """Raise UserError if these are not the images and labels it was trained on, as far as checksums were kept."""
        known, found = self.images, _identity(dataset)
        shape = known.get("shape", list(dataset.image_shape))
        if shape != list(dataset.image_shape):
            shape = tuple(shape) if isinstance(shape, list) else shape
            raise UserError(
                f"{self} was trained on images {shape}, {dataset.name} has {dataset.image_shape}; {_OTHER_IMAGES}"
            )
        if any(known[name] != found[name] for name in _COMPARED if name in known and name in found):
            raise UserError(
                f"the images or labels of {dataset.name} are no longer those {self} was trained on; {_OTHER_IMAGES}"
            )

    @property
    def scores(self) -> Content:
        """The content of scores.json under today's names: "training", and "metrics" if it was evaluated."""
        if not self.scores_file.exists():
            raise UserError(f"{self} is no finished run: it has no {SCORES}; train it first")
        return _renamed(_read_object(self.scores_file, "training", "metrics"))

    @property
    def metrics(self) -> dict[str, Content]:
        """Metric → its score or the reason why it has none, details, and its settings; empty if it has no scores."""
        with suppress(UserError):
            return {name: entry for name, entry in self.scores.get("metrics", {}).items() if _is_entry(entry)}
        return {}

    @property
    def undefined(self) -> dict[str, str]:
        """The metrics that have no score, and why."""
        entries = self.metrics.items()
        return {name: str(entry.get("reason")) for name, entry in entries if entry.get("score") is None}

    @property
    def tracked_as(self) -> dict[str, Content]:
        """Tracker → the run's "id" there and the last "step" it received; empty if the run was never tracked."""
        with suppress(OSError, ValueError):
            return dict(json.loads(self.tracking_file.read_bytes()))
        return {}

    @property
    def log(self) -> list[Content]:
        """The records of its training so far."""
        return read_log(self.log_file) if self.log_file.is_file() else []

    def check_writable(self) -> None:
        """Raise UserError before any work whose results could not be saved here."""
        self._check_not_shipped()
        check_writable(self.path)

    def _check_not_shipped(self) -> None:
        if is_shipped(self.path):
            raise UserError(f"{self} ships with lddr and stays as it is; copy that folder and use the copy")

    def alone(
        self,
        doing: Literal["run", "sweep", "scores"] = "run",
        say: Callable[[str], None] | None = None,
        wait: bool = True,
    ) -> AbstractContextManager[None]:
        """Hold the lock for training it, for working on it in a sweep, or for adding scores."""
        self._check_not_shipped()
        return alone(self.path / doing, say, wait)

    def write_config(self, config: "Config", versions: Content, images: Content, about: str = "") -> None:
        facts = {"format": FORMAT, "settings": config.as_dict(), "versions": versions, "dataset": images}
        write_json(self.config_file, facts | ({"about": about} if about else {}))

    def write_scores(self, training: dict[str, Any]) -> None:
        write_json(self.scores_file, {"training": training})

    def add_scores(self, entries: dict[str, Content]) -> Content:
        """Add scores to the existing ones, and return all of them."""
        with self.alone("scores"):  # another process may have added some meanwhile
            scores = self.scores | {"metrics": self.metrics | entries}
            write_json(self.scores_file, scores)
        return scores


def stamp_of(folder: str) -> Stamp | None:
    """Return what changes with config.json and scores.json, without opening them; None if this is no run.

    Files written atomically get a new inode; time and size reveal what an editor changes in place.
    """
    stamp: Stamp = []
    with suppress(OSError):
        for name in (CONFIG, SCORES):
            file = os.stat(f"{folder}/{name}")  # noqa: PTH116 (twice as fast)
            stamp += [file.st_ino, file.st_mtime_ns, file.st_size]
        stamp += [os.path.isfile(f"{folder}/{name}") for name in (LOG, MODEL)]  # noqa: PTH113 (twice as fast)
    return stamp or None


def upgraded(facts: Content, path: Path) -> Content:
    """Return the content of config.json in today's format; raise UserError for a newer one."""
    number = facts.get("format", 1)
    if type(number) is not int or not 1 <= number <= FORMAT:
        raise UserError(f"{path} has format {number!r}, this lddr knows 1 to {FORMAT}; update lddr to open it")
    return facts | {"settings": _with_names(facts["settings"])} if number == 1 else facts


def _renamed(scores: Content) -> Content:
    """Return the scores of older versions under today's names.

    PIPE scores whose settings name no judge come from a judge that is too weak, a convolutional network of width 8.
    Runs that have only one ELBO are older than the sampled one: theirs is the ELBO of codes without noise.
    """
    training, metrics = scores["training"], scores.get("metrics", {})
    if "elbo_noiseless" not in training:
        scores = scores | {"training": _with_new_name(training, "elbo", "elbo_noiseless")}
    if _is_entry(pipe := metrics.get("pipe")) and "judge" not in pipe.get("settings", {}):
        scores = scores | {"metrics": _with_new_name(metrics, "pipe", "pipe_small_judge")}
    return scores


def _with_new_name(values: Content, old: str, new: str) -> Content:
    return {new if name == old else name: value for name, value in values.items()}


def _with_names(settings: Content) -> Content:
    """Add the names of latent and objective, which format 1 implied by the model's name."""
    from lddr.models import models

    model = settings.get("model")
    if not isinstance(model, str) or model not in models:
        return settings
    names = {"latent": models[model].latent, "objective": models[model].objective}
    parts = {part: settings[part] for part in names if isinstance(settings.get(part), dict)}
    return settings | {part: {"name": names[part]} | settings[part] for part in parts}


def read_log(path: Path) -> list[Content]:
    """Return the records of a log; a last line that was cut short is left out."""
    if not path.exists():
        raise UserError(f"there is no log {path}; train first or correct the path")
    records = [record_of(line) for line in path.read_bytes().splitlines(keepends=True)]
    if None in records[:-1]:
        number = records.index(None) + 1
        raise UserError(f"line {number} of {path} is damaged; delete that line, or train again in another folder")
    return [record for record in records if record is not None]


def record_of(line: bytes) -> Content | None:
    """Return the record of a whole line of the log, None for a torn one."""
    try:
        record = json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("step"), int) else None


def pretrained_names() -> list[str]:
    """Return the names of the models that ship with lddr."""
    return sorted(folder.parent.name for folder in PRETRAINED.glob("*/config.json"))


def is_shipped(folder: Path) -> bool:
    """Return whether a folder belongs to the package, which must stay as it is."""
    return folder.resolve().is_relative_to(PRETRAINED.resolve())


def located(given: str | Path) -> Path:
    """Return the folder that is meant: an existing one, else the shipped model of this name."""
    name, path = str(given), Path(given)
    if path.exists() or Path(name).name != name:
        return path
    if name in pretrained_names():
        return PRETRAINED / name
    if near := hint(name, pretrained_names()):
        raise UserError(f"there is no folder {name}; {near}See the models that ship with lddr: {LIST_PRETRAINED}")
    return path


def loaded(name: str, resolution: int | str | None, fit: str | None = None, background: str = "auto") -> "Dataset":
    """Return a dataset, cached by its absolute path, since a relative one may lead elsewhere later."""
    from lddr.data.load import absolute

    return _loaded(absolute(name), resolution, fit, background)


@lru_cache(maxsize=4)
def _loaded(name: str, resolution: int | str | None, fit: str | None, background: str) -> "Dataset":
    from lddr.data.load import load_dataset

    return load_dataset(name, resolution, fit, background)


def _identity(dataset: "Dataset") -> Content:
    """Return the checksums of a dataset, computed once while it is in memory."""
    from lddr.data.dataset import identity

    if dataset not in _identities:
        _identities[dataset] = identity(dataset)
    return _identities[dataset]


_identities: WeakKeyDictionary["Dataset", Content] = WeakKeyDictionary()


def _read_object(path: Path, needed: str, *others: str) -> Content:
    """Return the JSON object of a file, which holds an object under the needed name, and under others if at all."""
    if not path.is_file():
        raise BrokenRunError(path, "is no file")
    try:
        content = json.loads(content_of(path, LARGEST_JSON))
    except Exception as error:  # untrusted bytes
        raise BrokenRunError(path, f"is no JSON ({reason_of(error)})") from error
    for name in (needed, *others):
        if not isinstance(content, dict) or not isinstance(content.get(name, None if name == needed else {}), dict):
            raise BrokenRunError(path, f"holds no {name!r}")
    return content


def _is_entry(entry: Any) -> bool:
    """Return whether this is the score of a metric, or the reason why it has none, in a form that can be shown."""
    if not isinstance(entry, dict):
        return False
    if not all(isinstance(entry.get(name, kind()), kind) for name, kind in _ENTRY_TYPES.items()):
        return False
    score = entry.get("score")
    return score is None or (type(score) in (int, float) and abs(score) < 1e300)
