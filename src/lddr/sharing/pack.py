"""A run folder to give away: what opens it, without the places of this machine and without what only training needs."""

import json
from dataclasses import replace
from pathlib import Path

import torch

from lddr.data.dataset import datasets
from lddr.files import write_json, written_whole
from lddr.report.traversals import spread
from lddr.runs.folder import FORMAT, RunFolder
from lddr.trained import Trained
from lddr.training.checkpoint import module_tensors, save_model

MOST_LINES = 100  # of the log, evenly spread: enough for its curves


def pack(trained: Trained, out: Path, about: str = "", half: bool = False) -> RunFolder:
    """Write a model into a folder, and of its run what is there: images, versions, log, scores.

    With `half` the weights are in 16 bits, and the scores, which those in 32 have, are left out.
    """
    run, packed = run_of(trained), RunFolder(out)
    config = replace(trained.config, dataset=public(trained.config.dataset))
    tensors = module_tensors("vae", trained.vae)
    if half:
        tensors = {name: each.half() if each.dtype == torch.float else each for name, each in tensors.items()}
    facts = {"format": FORMAT, "settings": config.as_dict(), "image_shape": list(trained.image_shape)}
    save_model(packed.model_file, tensors, facts)
    images = {name: fact for name, fact in run.images.items() if name != "path"} if run else {}
    packed.write_config(config, run.versions if run else {}, images and images | {"name": config.dataset}, about)
    if run is not None:
        _write_log(run, packed)
    if run is not None and run.scores_file.exists() and not half:
        write_json(packed.scores_file, run.scores)
    return packed


def run_of(trained: Trained) -> RunFolder | None:
    """The run a model was loaded from, as long as it is there."""
    run = None if trained.folder is None else RunFolder(trained.folder)
    return run if run is not None and run.is_run and run.config == trained.config else None


def public(dataset: str) -> str:
    """The name of a dataset; where on this machine somebody's own images are is nobody's business."""
    return dataset if dataset in datasets else Path(dataset).stem or "images"


def _write_log(run: RunFolder, packed: RunFolder) -> None:
    records = run.log
    chosen = [records[place] for place in spread(len(records), MOST_LINES)] if records else []
    with written_whole(packed.log_file) as draft:
        draft.write_text("".join(f"{json.dumps(record)}\n" for record in chosen))
