"""A training state on disk: named tensors and a few facts, checked by a digest, whole or not there."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from lddr.errors import UserError
from lddr.files import content_of, reason_of, written_whole

Tensors = Mapping[str, Tensor]
Facts = dict[str, Any]  # whatever JSON can hold

_DRAFTS = f".*-{'[0-9a-f]' * 8}.safetensors"  # as `written_whole` calls them
_RENAMED = re.compile(r"^(vae\.)family\.")  # tensors of the latent in files of older versions
_LARGEST = 4 << 30  # bytes of a file


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a run needs to resume after `step` as if it had not been interrupted."""

    step: int
    tensors: dict[str, Tensor]
    facts: Facts


def module_tensors(prefix: str, module: nn.Module) -> dict[str, Tensor]:
    """Return the weights and buffers of a module by name, not copied."""
    return {f"{prefix}.{name}": tensor for name, tensor in module.state_dict().items()}


def load_module(prefix: str, module: nn.Module, tensors: Tensors) -> None:
    """Fill a module with the weights and buffers `module_tensors` gave, in its own memory format."""
    fill(prefix, module_tensors(prefix, module), tensors)


def fill(prefix: str, targets: Tensors, tensors: Tensors) -> None:
    """Copy tensors into the targets of the same names; nothing may be missing, left over or of another kind."""
    check_fit(prefix, targets, tensors)
    for name, target in targets.items():
        target.copy_(tensors[name])


def check_fit(prefix: str, targets: Tensors, tensors: Tensors) -> None:
    """Refuse tensors that cannot be copied into the targets, by their names, types and shapes."""
    wanted = {name: _type_and_shape(tensor) for name, tensor in targets.items()}
    stored = {name: _type_and_shape(tensor) for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}
    for name in sorted(wanted.keys() | stored.keys()):
        if wanted.get(name) != stored.get(name):
            misfit = f"is {stored.get(name, 'missing')} and should be {wanted.get(name)}"
            remedy = "use the settings it was saved with, or another folder"
            trouble = f"{name} {misfit if name in wanted else 'is unexpected'}"
            raise UserError(f"what was saved as {prefix!r} does not fit: {trouble}; {remedy}")


def _type_and_shape(tensor: Tensor) -> str:
    return f"{tensor.dtype} {tuple(tensor.shape)}".removeprefix("torch.")


def save(folder: Path, step: int, tensors: Tensors, facts: Facts) -> None:
    """Write the checkpoint of `step`, and only then remove all but it and the one before it."""
    # drafts of killed processes go first, because the room may be needed; a folder has one writer at a time
    _remove(folder.glob(_DRAFTS))
    save_model(folder / f"{step:09d}.safetensors", tensors, facts)
    # those after `step` go as well: a run that has gone back behind them did not trust them
    kept = [path for path in _checkpoints(folder) if int(path.stem) <= step][:2]
    _remove({*_checkpoints(folder), *folder.glob("*.damaged")} - {*kept})


def load_newest(folder: Path, warn: Callable[[str], None]) -> Checkpoint | None:
    """Return the newest checkpoint that is good, or None; damaged ones are named to `warn` and set aside."""
    paths = _checkpoints(folder)
    for path, older in zip_longest(paths, paths[1:]):
        try:
            tensors, facts = read_checkpoint(path)
        except Exception as error:  # untrusted bytes, once they are damaged
            remedy = f"going back to {older.name}" if older else "starting from the beginning"
            warn(f"cannot use the checkpoint {path} ({reason_of(error)}); {remedy}")
            with suppress(OSError):  # so that it never counts as the one before a newer one
                path.replace(path.with_suffix(".damaged"))
        else:
            return Checkpoint(int(path.stem), tensors, facts)
    return None


def load_model(path: Path) -> tuple[dict[str, Tensor], Facts]:
    """Return the weights and facts `save_model` wrote."""
    try:
        return read_checkpoint(path)
    except FileNotFoundError as error:
        remedy = "train it first, correct the path, or take one that ships with lddr: lddr models --pretrained"
        raise UserError(f"there is no model {path}; {remedy}") from error
    except Exception as error:  # untrusted bytes
        raise UserError(f"cannot use the model {path} ({reason_of(error)}); train it again or copy it again") from error


def save_model(path: Path, tensors: Tensors, facts: Facts) -> None:
    """Write one file of weights with the facts about them."""
    whole = torch.contiguous_format
    copies = {name: tensor.detach().to("cpu", copy=True, memory_format=whole) for name, tensor in tensors.items()}
    text = json.dumps(facts)
    # one entry, because safetensors writes several in any order, and the same state must give the same bytes
    entry = json.dumps({"facts": text, "digest": digest_of(copies, text)})
    content = safetensors.torch.save(copies, {"lddr": entry})
    with written_whole(path) as draft:
        draft.write_bytes(content)  # not by safetensors' own writer, which hides what the system said about a full disk


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], Facts]:
    content = content_of(path, _LARGEST)
    tensors = safetensors.torch.load(content)
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    metadata = json.loads((header.get("__metadata__") or {}).get("lddr", "{}"))
    if not {"facts", "digest"} <= metadata.keys():
        raise ValueError("it was not written by lddr")
    if digest_of(tensors, metadata["facts"]) != metadata["digest"]:
        raise ValueError("its digest is not that of its content")
    facts = json.loads(metadata["facts"])
    if not isinstance(facts, dict):
        raise ValueError("its metadata holds no facts")
    return {_RENAMED.sub(r"\1latent.", name): tensor for name, tensor in tensors.items()}, facts


def digest_of(tensors: Tensors, facts: str) -> str:
    """Return the SHA-256 of the facts and of the name, type, shape and bytes of every tensor."""
    digest = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        digest.update(repr((name, _type_and_shape(tensors[name]))).encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a folder, newest first."""
    found = [path for path in folder.glob("*.safetensors") if path.stem.isdecimal()]
    return sorted(found, key=lambda path: int(path.stem), reverse=True)


def _remove(paths: Iterable[Path]) -> None:
    for path in list(paths):
        with suppress(OSError):  # an old file that cannot be removed is no reason to stop training
            path.unlink()
