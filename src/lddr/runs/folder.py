"""A run is a folder: what its files are called, what they hold and how far it got. Nobody else knows."""

import json
import os
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

from lddr.data import as_resolution
from lddr.errors import UserError
from lddr.files import alone, check_writable, in_one_line, reading_untrusted, write_json
from lddr.runs.json_files import Content, is_entry, read_object
from lddr.runs.machine import MOST_THREADS
from lddr.runs.pretrained import is_shipped

if TYPE_CHECKING:
    from lddr.config import Config
    from lddr.data.dataset import Dataset

State = Literal["finished", "training", "broken"]
Stamp = list[
    int
]  # of config.json and, if there, scores.json: inode, time of change in nanoseconds, size; what is there

FORMAT = 2  # of config.json and of the settings beside weights; a file without a number has format 1
CONFIG, SCORES, LOG, MODEL = "config.json", "scores.json", "log.jsonl", "model.safetensors"
NEEDED = (CONFIG, LOG, MODEL, SCORES)  # of a finished run
SMALL_JUDGE = "pipe_small_judge"  # PIPE with a judge that is too weak: a convolutional network of width 8
TAIL = 4096  # bytes at the end of a log that hold its last line
COMPARED = ("checksum", "content", "factors")  # of what is known of the images; older runs may have kept less
CURE = "put them back, or move that folder away (or give another --out) and train on these"
ARRAY = re.compile("array-[0-9a-f]{8}")  # what lddr.data.in_memory calls images that are in no file
RECORD = re.compile(rb'^\{"step": (\d+)\b.*\}\n', re.MULTILINE)


class RunFolder:
    """The folder of a run; nothing but the dataset is kept in memory, since the files change while a run trains."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config_file, self.scores_file = self.path / CONFIG, self.path / SCORES
        self.log_file, self.model_file = self.path / LOG, self.path / MODEL
        self.discriminator_file = self.path / "discriminator.safetensors"  # of its own: large, and few need it
        self.checkpoints, self.tensorboard = self.path / "checkpoint", self.path / "tensorboard"
        self.tracking_file = self.path / "tracking.json"  # what it is called by trackers, and how far they know it
        self.error_file = self.path / "error.txt"  # of a sweep: the last traceback

    def __str__(self) -> str:
        return str(self.path)

    # how far it is

    @property
    def is_run(self) -> bool:
        """Whether there are settings, so that this is a run at all."""
        return self.config_file.exists()

    @property
    def missing(self) -> list[str]:
        """The files it lacks to be finished."""
        return [name for name in NEEDED if not (self.path / name).is_file()]

    @property
    def is_finished(self) -> bool:
        return not self.missing

    @property
    def state(self) -> State:
        """Finished when all files are there; scores, the last of them, without the others are a broken run."""
        if self.is_finished:
            return "finished"
        return "broken" if self.scores_file.exists() or not self.is_run else "training"

    def require(self, *names: str) -> None:
        """Refuse to go on with a run some of whose files somebody took away."""
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
            records = RECORD.findall(log.read())
            return int(records[-1]) if records else 0
        return 0

    @property
    def saved_step(self) -> int | None:
        """The step of the newest checkpoint."""
        names = (file.stem for file in self.checkpoints.glob("*.safetensors"))
        return max((int(name) for name in names if name.isdecimal()), default=None)

    # what it is

    @property
    def facts(self) -> Content:
        """All of config.json, in today's format: "settings", and in most "versions" and "dataset"."""
        if not self.is_run:
            raise UserError(f"{self} is no run: it has no {CONFIG}")
        facts = read_object(self.config_file, "settings")
        return upgraded(facts, self.config_file)

    @property
    def config(self) -> "Config":
        """Its settings."""
        from lddr.config import Config

        with reading_untrusted(self.config_file, "the settings of a run", "move that folder away and train again"):
            return Config.from_dict(self.facts["settings"])

    @property
    def versions(self) -> Content:
        """Of lddr and what it ran on; nothing where nothing was kept."""
        with suppress(UserError):
            known = self.facts.get("versions")
            return known if isinstance(known, dict) else {}
        return {}

    @property
    def threads(self) -> int | None:
        """Of torch, when it began; None where that was not kept."""
        known = str(self.versions.get("threads"))
        return int(known) if known.isdecimal() and 0 < int(known) <= MOST_THREADS else None

    @property
    def images(self) -> Content:
        """What is known of its images: name, number, shape, factors, checksum, path; nothing where nothing was kept."""
        known = self.facts.get("dataset")
        return known if isinstance(known, dict) else {}

    @property
    def about(self) -> str:
        """What a shipped model shows, in a line; nothing of other runs."""
        return str(self.facts.get("about", ""))

    @property
    def dataset(self) -> "Dataset":
        """The images it was trained on, loaded once for all runs on them; others of the same name are refused."""
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
        """Where its images are: where they were read from, if they are still there, else what its settings name."""
        path = self.images.get("path")
        if isinstance(path, str) and os.path.exists(path):  # noqa: PTH110 (takes any name)
            return path
        return self.config.dataset

    def _why_no_images(self, place: str) -> str:
        in_python = f"score it there with lddr.evaluate(dataset, lddr.Trained.load({str(self)!r}))"
        if ARRAY.fullmatch(place):
            cure = f"{in_python}, or save the images as .npz and train on that"
            return f"{self} was trained on an array in Python, which is in no file; {cure}"
        where = f"the images that {self} was trained on are not at"
        if known := self.images.get("path"):
            return f"{where} {in_one_line(str(known))}; put them back"
        cure = "start lddr in the folder from which this path leads to them"
        return f"{where} {place}; {cure}, or, if they were given in Python, {in_python}"

    def check(self, dataset: "Dataset") -> None:
        """Refuse images or labels that are not those it was trained on, as far as it kept what tells them apart."""
        known, found = self.images, _identity(dataset)
        shape = known.get("shape", list(dataset.image_shape))
        if shape != list(dataset.image_shape):
            shape = tuple(shape) if isinstance(shape, list) else shape
            raise UserError(f"{self} was trained on images {shape}, {dataset.name} has {dataset.image_shape}; {CURE}")
        if any(known[name] != found[name] for name in COMPARED if name in known and name in found):
            raise UserError(f"the images or labels of {dataset.name} are no longer those {self} was trained on; {CURE}")

    # what it found

    @property
    def scores(self) -> Content:
        """All of scores.json, by today's names: "training", and "metrics" where it was evaluated."""
        if not self.scores_file.exists():
            raise UserError(f"{self} is no finished run: it has no {SCORES}; train it first")
        return _renamed(read_object(self.scores_file, "training"))

    @property
    def metrics(self) -> dict[str, Content]:
        """Metric → its score or the reason why it has none, what else it found, and its settings; as far as known."""
        with suppress(UserError):
            entries = self.scores.get("metrics")
            known = entries if isinstance(entries, dict) else {}
            return {name: entry for name, entry in known.items() if is_entry(entry)}
        return {}

    @property
    def undefined(self) -> dict[str, str]:
        """The metrics that have no score here, and why."""
        entries = self.metrics.items()
        return {name: str(entry.get("reason")) for name, entry in entries if entry.get("score") is None}

    @property
    def tracked_as(self) -> dict[str, Content]:
        """Tracker → the run's "id" there, and the last "step" it was told; nothing where nothing is known."""
        with suppress(OSError, ValueError, RecursionError):
            known = json.loads(self.tracking_file.read_bytes())
            return (
                {name: each for name, each in known.items() if isinstance(each, dict)}
                if isinstance(known, dict)
                else {}
            )
        return {}

    @property
    def log(self) -> list[Content]:
        """The records of its training so far."""
        from lddr.runs.tracking import read_log

        return read_log(self.log_file) if self.log_file.is_file() else []

    # writing

    def check_writable(self) -> None:
        """Refuse to work for a folder that cannot keep what comes of it."""
        self._check_is_own()
        check_writable(self.path)

    def _check_is_own(self) -> None:
        if is_shipped(self.path):
            raise UserError(f"{self} ships with lddr and stays as it is; copy that folder and use the copy")

    def alone(
        self,
        doing: Literal["run", "sweep", "scores"] = "run",
        say: Callable[[str], None] | None = None,
        wait: bool = True,
    ) -> AbstractContextManager[None]:
        """Be the only process that does this to it."""
        self._check_is_own()
        return alone(self.path / doing, say, wait)

    def write_config(self, config: "Config", versions: Content, images: Content, about: str = "") -> None:
        facts = {"format": FORMAT, "settings": config.as_dict(), "versions": versions, "dataset": images}
        write_json(self.config_file, facts | ({"about": about} if about else {}))

    def write_scores(self, training: dict[str, float]) -> None:
        write_json(self.scores_file, {"training": training})

    def add_scores(self, entries: dict[str, Content]) -> Content:
        """Keep more scores beside those there are; gives all of them."""
        with self.alone("scores"):  # somebody else may have added some meanwhile
            there = self.scores
            scores = there | {"metrics": self.metrics | entries}
            write_json(self.scores_file, scores)
        return scores


def stamp_of(folder: str) -> Stamp | None:
    """Tells whether what lists show of a run changed, without opening its files; None if this is no run.

    Files written whole are new ones, so the inode alone would tell; time and size see what an editor does in place.
    """
    stamp: Stamp = []
    with suppress(OSError):
        for name in (CONFIG, SCORES):
            file = os.stat(f"{folder}/{name}")  # noqa: PTH116 (twice as fast)
            stamp += [file.st_ino, file.st_mtime_ns, file.st_size]
        stamp += [os.path.isfile(f"{folder}/{name}") for name in (LOG, MODEL)]  # noqa: PTH113 (twice as fast)
    return stamp or None


def upgraded(facts: Content, path: Path) -> Content:
    """What was kept in an older format, as today's says it; one of the future is refused."""
    number = facts.get("format", 1)
    if type(number) is not int or not 1 <= number <= FORMAT:
        raise UserError(f"{path} has format {number!r}, this lddr knows 1 to {FORMAT}; update lddr to open it")
    return facts | {"settings": _with_names(facts["settings"])} if number == 1 else facts


def _renamed(scores: Content) -> Content:
    """The scores of older versions under today's names.

    PIPE scores whose settings name no judge are from before it was the published one. Runs that have one ELBO are older
    than the sampled one: theirs is that of codes without noise.
    """
    if "elbo_noiseless" not in (training := scores["training"]):
        renamed = {"elbo_noiseless" if name == "elbo" else name: value for name, value in training.items()}
        scores = scores | {"training": renamed}
    entries = scores.get("metrics")
    if not isinstance(entries, dict) or not isinstance(pipe := entries.get("pipe"), dict):
        return scores
    if isinstance(settings := pipe.get("settings"), dict) and "judge" in settings:
        return scores
    return scores | {"metrics": {SMALL_JUDGE if name == "pipe" else name: entry for name, entry in entries.items()}}


def _with_names(settings: Content) -> Content:
    """Format 1 says by the name of the model alone which latent and objective it has."""
    from lddr.models import models

    model = settings.get("model")
    if not isinstance(model, str) or model not in models:
        return settings
    names = {"latent": models[model].latent, "objective": models[model].objective}
    parts = {part: settings[part] for part in names if isinstance(settings.get(part), dict)}
    return settings | {part: {"name": names[part]} | settings[part] for part in parts}


def loaded(name: str, resolution: int | str | None, fit: str | None = None, background: str = "auto") -> "Dataset":
    """A dataset, kept for the next run on it; a relative path may lead elsewhere by then."""
    from lddr.data.load import absolute

    return _loaded(absolute(name), resolution, fit, background)


@lru_cache(maxsize=4)
def _loaded(name: str, resolution: int | str | None, fit: str | None, background: str) -> "Dataset":
    from lddr.data.load import load_dataset

    return load_dataset(name, resolution, fit, background)


def _identity(dataset: "Dataset") -> Content:
    """Worked out once for all runs on these images, which are not kept longer for that."""
    from lddr.data.dataset import identity

    if dataset not in _identities:
        _identities[dataset] = identity(dataset)
    return _identities[dataset]


_identities: WeakKeyDictionary["Dataset", Content] = WeakKeyDictionary()
