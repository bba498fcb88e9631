"""Every run below a folder, as flat values; an index file makes listing fast, and the run folders remain the truth."""

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lddr.console import say
from lddr.errors import UserError, hint
from lddr.files import content_of, reason_of, written_whole
from lddr.runs.folder import (
    LIST_PRETRAINED,
    PRETRAINED,
    BrokenRunError,
    RunFolder,
    Stamp,
    State,
    is_shipped,
    pretrained_names,
    stamp_of,
)
from lddr.settings import flattened

Value = str | int | float | None

INDEX, INDEX_FORMAT, LARGEST_INDEX = ".index.json", 4, 1 << 30  # raise the format when other values are kept; bytes
OWN = ("run", "name", "folder", "state")
TRAINING_SCORES = (
    *("elbo", "elbo_noiseless", "reconstruction", "kl", "validation_risk", "validation_risk_guessing"),
    *("mean_picture", "explained", "active_latents", "saturated_latents", "codes"),
)
LEAST_EXPLAINED = 0.01  # a model that explains less of its images is no better than the mean image


@dataclass(frozen=True)
class Run:
    """A run folder: its settings by the names of the command line, its scores, and how far it got.

    The settings include "checksum", which is equal for two runs on the same images.
    """

    folder: Path
    state: State
    settings: dict[str, Value]
    scores: dict[str, float]  # "elbo", "mig", and details such as "dci.completeness"; undefined scores are left out
    reason: str | None = None  # why it is broken

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def run(self) -> str:
        """The fingerprint at the end of its name, which is enough to find it again; else the whole name."""
        last = self.name.rsplit("_", 1)[-1]
        return last if len(last) == 8 and set(last) <= set("0123456789abcdef") else self.name

    @property
    def collapsed(self) -> bool:
        """Whether it is finished and its reconstructions are no better than the mean image."""
        return self.state == "finished" and is_collapsed(self.scores)

    @property
    def files(self) -> RunFolder:
        return RunFolder(self.folder)

    def value(self, name: str) -> Value:
        """Return a setting, a score, "state", "name", "run" or "folder"; None if this run does not have it.

        The state of a finished run that has learned nothing is "collapsed".
        """
        if name == "state" and self.collapsed:
            return "collapsed"
        if name in OWN:
            return str(getattr(self, name))
        return self.settings[name] if name in self.settings else self.scores.get(name)

    def number(self, name: str) -> float | None:
        """Return the value if it is a number."""
        value = self.value(name)
        return None if isinstance(value, str | None) else float(value)


def is_collapsed(scores: Mapping[str, float]) -> bool:
    """Return whether a model with these scores is no better than the mean image; older runs have fewer scores."""
    if "explained" in scores:
        return scores["explained"] < LEAST_EXPLAINED
    return scores.get("reconstruction", 0.0) >= scores.get("mean_picture", math.inf)


def list_runs(root: str | Path) -> list[Run]:
    """Return the runs at or below a folder, at any depth, sorted by path; broken ones have a reason."""
    top = Path(root)
    if not top.is_dir():
        raise UserError(f"there is no folder {top}; give the one that holds the runs")
    known = _read_index(top)
    fresh: dict[str, dict[str, Any]] = {}
    runs = []
    for place, stamp in _found(str(top)):
        key = place[len(str(top)) :].lstrip(os.sep)
        if (entry := known.get(key)) and entry["stamp"] == stamp:
            run = Run(Path(place), **entry["run"])
        else:
            run = read_run(Path(place))
            entry = {"stamp": stamp, "run": {"state": run.state, "settings": run.settings, "scores": run.scores}}
        if run.state != "broken":  # which may be fixed without a new stamp: read it again next time
            fresh[key] = entry
        runs.append(run)
    if fresh != known and "" not in fresh and not is_shipped(top):  # a root that is a run needs none
        _write_index(top, fresh)
    return runs


def gather(roots: Iterable[str | Path]) -> list[Run]:
    """Return the runs below several folders, each run once."""
    runs = {os.path.abspath(run.folder): run for root in roots for run in list_runs(root)}  # noqa: PTH100 (links kept)
    return list(runs.values())


def finished_runs(roots: Sequence[Path]) -> list[Path]:
    """Return the folders that are runs, and all finished runs below folders that hold runs.

    If there are several, as from runs/icons_*, those that still train are skipped with a message.
    """
    found: dict[Path, None] = {}
    for root in roots:
        if (run := RunFolder(root)).is_run:
            if run.state == "training" and len(roots) > 1:
                say(f"{root} is not finished and is skipped")
            else:
                found[root] = None
        else:
            found |= {run.folder: None for run in list_runs(root) if run.state == "finished"}
    if not found:
        raise UserError("there is no finished run in these folders; train one first with: lddr train")
    return list(found)


def find_run(text: str, root: Path) -> Run:
    """Return the run of a folder, else the one below the root with this in its name, else the shipped model."""
    if RunFolder(text).is_run:
        return read_run(Path(text))
    if Path(text).is_dir():
        raise UserError(f"{text} is no run: it has no config.json; list the runs in it with: lddr runs ls {text}")
    shipped = [read_run(PRETRAINED / text)] if text in pretrained_names() else []
    near = "" if shipped else hint(text, pretrained_names())
    runs = list_runs(root) if root.is_dir() else []
    found = [run for run in runs if text in (run.name, run.run)] or shipped or [run for run in runs if text in run.name]
    if not found:
        there = f"no run below {root} has {text!r} in its name"
        where = there if root.is_dir() else f"there is no run {text!r}, nor a folder {root}"
        raise UserError(f"{where}; {near}see runs with: lddr runs ls FOLDER, shipped models with: {LIST_PRETRAINED}")
    if len(found) > 1:
        some = ", ".join(str(run.folder) for run in found[:3]) + (", …" if len(found) > 3 else "")
        raise UserError(f"{text!r} could be any of {len(found)} runs ({some}); give more of the name, or the folder")
    return found[0]


def read_run(folder: Path) -> Run:
    """Read one run from its files, without the index."""
    files, settings = RunFolder(folder), {}
    try:
        found = flat_settings(files.facts["settings"]) | {"checksum": files.images.get("checksum")}
        nonsense = _unusable(found)
        settings = {name: value for name, value in found.items() if name not in nonsense}
        if nonsense:
            raise BrokenRunError(files.config_file, f"holds no usable value of {nonsense[0]!a}")
        settings = completed(settings)
        if files.state == "training":
            return Run(folder, "training", settings, {})
        scores = flat_scores(files.scores)
        if missing := files.missing:
            return Run(folder, "broken", settings, scores, f"{missing[0]} is missing; train it again")
    except BrokenRunError as error:
        return Run(folder, "broken", settings, {}, error.reason)
    except (UserError, ValueError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        return Run(folder, "broken", settings, {}, reason_of(error))
    return Run(folder, "finished", settings, scores)


def common_elbo(runs: Iterable[Run]) -> str:
    """Return the ELBO by which these runs can be compared: the noiseless one if older runs have no other."""
    older = any("elbo_noiseless" in run.scores and "elbo" not in run.scores for run in runs)
    return "elbo_noiseless" if older else "elbo"


def flat_settings(settings: dict[str, Any]) -> dict[str, Value]:
    """Return every setting under its name on the command line, as a table shows it."""
    return {name: _flat_value(value) for name, value in flattened(settings).items()}


def completed(settings: dict[str, Value]) -> dict[str, Value]:
    """Add the value that runs had before a setting existed, mostly its default: otherwise two versions would differ."""
    known = _defaults(str(settings.get("model")), settings.get("supervision") is not None)
    return settings | {name: value for name, value in known.items() if name not in settings}


@cache
def _defaults(model: str, is_supervised: bool) -> dict[str, Value]:
    """Return the default of every setting that such runs can have."""
    from lddr.config import BEFORE, BERNOULLI, settings_of
    from lddr.models import models
    from lddr.parts import likelihoods

    if model not in models:  # a user's own model, not known here
        return {}
    rules = [(name, owner, rule) for name, one in settings_of(model).items() for owner, rule in one.rules.items()]
    absent = {*likelihoods} - {BERNOULLI} | (set() if is_supervised else {"supervision"})
    found = [(name, rule.default) for name, owner, rule in rules if owner not in absent]
    return {"likelihood": BERNOULLI} | {name: _flat_value(BEFORE.get(name, default)) for name, default in found}


def flat_scores(content: dict[str, Any]) -> dict[str, float]:
    """Return the numbers of scores.json: scores under their metric, details dotted; no matrices, no NaN."""
    flat = dict(_numbers("", content["training"]))
    for metric, result in content.get("metrics", {}).items():
        details = {name: value for name, value in result.items() if name not in ("score", "settings")}
        flat |= dict(_numbers("", {metric: result.get("score")})) | dict(_numbers(f"{metric}.", details))
    return flat


def code_rows(run: Run) -> dict[str, str]:
    """Return the usage of codes in each latent of a discrete model: the rows of a table, from scores.json."""
    codes = run.files.scores["training"].get("codes", {}) if run.state == "finished" else {}
    rows = {name: row for name, row in codes.items() if isinstance(row, list)}
    return {f"codes.{name}": ", ".join(f"{each:.3g}" for each in row) for name, row in rows.items()}


def _numbers(prefix: str, values: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _numbers(f"{prefix}{name}.", value)
        elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            yield f"{prefix}{name}", value


def _unusable(settings: dict[str, Any]) -> list[str]:
    """Return the settings that cannot be shown, and those that every run needs and that have another type here."""
    needed = {"dataset": str, "model": str, "steps": int, "seed": int}
    odd = [name for name, kind in needed.items() if not isinstance(settings.get(name), kind)]
    return odd + sorted(name for name, value in settings.items() if not (_is_plain(name) and _is_plain(value)))


def _flat_value(value: Any) -> Value:
    if isinstance(value, list | tuple) and all(map(_is_plain, value)):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else value


def _is_plain(value: Any) -> bool:
    """Return whether every table, file and page can show it: a finite number, a text that can be encoded, or None."""
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)
    return value is None or (isinstance(value, int | float) and abs(value) < 1e300)


def _found(folder: str) -> Iterator[tuple[str, Stamp]]:
    """Yield run folders with their stamps, sorted; hidden folders, links to other folders and runs are not searched."""
    if (stamp := stamp_of(folder)) is not None:
        yield folder, stamp
        return
    inner: list[str] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith(".") and entry.is_dir() and (not entry.is_symlink() or stamp_of(entry.path)):
                inner.append(entry.path)
    for path in sorted(inner):
        yield from _found(path)


def _read_index(root: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of the index; none if it is missing, of another version, or not as lddr wrote it."""
    with suppress(OSError, ValueError, RecursionError):
        content = content_of(root / INDEX, LARGEST_INDEX)
        head, _, body = content.partition(b"\n")
        if head == _head(body):
            return json.loads(content)["runs"]
    return {}


def _write_index(root: Path, entries: dict[str, dict[str, Any]]) -> None:
    """Write the index for the next time; if that is impossible, listing is only slower."""
    body = f'"runs":{json.dumps(entries, separators=(",", ":"))}}}'.encode()
    with suppress(OSError, UserError), written_whole(root / INDEX) as draft:
        draft.write_bytes(_head(body) + b"\n" + body)


def _head(body: bytes) -> bytes:
    """Return the first line of the index: its format, and a digest that reveals damage and edits."""
    digest = hashlib.blake2b(body, digest_size=16).hexdigest()
    return f'{{"format":{INDEX_FORMAT},"digest":"{digest}",'.encode()
