"""Models to share: a run folder with only the files that others need, its card, and the Hugging Face Hub."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

import lddr
from lddr.config import train_words
from lddr.console import say
from lddr.data.dataset import Images, datasets
from lddr.data.samples import MOST_SAMPLES, choose_samples, write_samples
from lddr.errors import UserError, check_installed
from lddr.files import reason_of, write_json, written_whole
from lddr.report.exhibits import card_figures
from lddr.report.style import dataset_title, method_title, metric_title, rendered_as
from lddr.report.traversals import LoadedRun, evenly_spaced
from lddr.runs.folder import CARD, CONFIG, FORMAT, LOG, MODEL, SAMPLES, SCORES, RunFolder
from lddr.runs.index import Run, flat_scores, flat_settings
from lddr.runs.tables import headlines, shown
from lddr.trained import Trained
from lddr.training.checkpoint import module_tensors, save_model

PICTURE = "traversals.png"
FILES = (CARD, CONFIG, LOG, MODEL, PICTURE, SAMPLES, SCORES)  # no other file is ever uploaded or downloaded
MOST_LINES = 100  # of the log, evenly spaced: enough for its curves
LOGIN = "log in with: hf auth login, or give a token"


def pack(trained: Trained, out: Path, about: str = "", half: bool = False, samples: int = 0) -> RunFolder:
    """Write a model into a folder, with the log and the scores of its run, but without paths of this machine.

    With `half`, weights have 16 bits, and the scores, which belong to 32 bits, are left out. With `samples`, that many
    images of the training set are written, too.
    """
    run, packed = run_of(trained), RunFolder(out)
    if samples:
        write_samples(packed.samples_file, _samples_of(run, samples))
    dataset = trained.config.dataset
    config = replace(trained.config, dataset=dataset if dataset in datasets else Path(dataset).stem or "images")
    tensors = module_tensors("vae", trained.vae)
    if half:
        tensors = {name: each.half() if each.dtype == torch.float else each for name, each in tensors.items()}
    facts = {"format": FORMAT, "settings": config.as_dict(), "image_shape": list(trained.image_shape)}
    save_model(packed.model_file, tensors, facts)
    images = {name: fact for name, fact in run.images.items() if name != "path"} if run else {}
    packed.write_config(config, run.versions if run else {}, images and images | {"name": config.dataset}, about)
    if run is not None:
        records = run.log
        chosen = [records[place] for place in evenly_spaced(len(records), MOST_LINES)] if records else []
        with written_whole(packed.log_file) as draft:
            draft.write_text("".join(f"{json.dumps(record)}\n" for record in chosen))
        if run.scores_file.exists() and not half:
            write_json(packed.scores_file, run.scores)
    return packed


def _samples_of(run: RunFolder | None, count: int) -> Images:
    if not 0 < count <= MOST_SAMPLES:
        raise UserError(f"a model can be shared with 0 to {MOST_SAMPLES} samples, not {count}")
    if run is None:
        raise UserError("only a model that is loaded from the folder of its run has samples; load it from there")
    return choose_samples(LoadedRun(_as_run(run)).dataset, count)


def run_of(trained: Trained) -> RunFolder | None:
    """Return the run that a model was loaded from, if it still exists."""
    run = None if trained.folder is None else RunFolder(trained.folder)
    return run if run is not None and run.is_run and run.config == trained.config else None


def write_model_card(packed: RunFolder, name: str, source: RunFolder | None, licence: str | None = None) -> None:
    """Write the README.md of a packed run, with a picture of its latents if the run and its images are available.

    The picture shows an image of a user's own only if the run was packed with samples.
    """
    import yaml  # huggingface_hub installs it

    run, caption = _as_run(packed), None
    shows_input = packed.config.dataset in datasets or packed.samples_file.exists()
    if source is not None:
        with suppress(UserError):  # the images may be elsewhere
            figure = card_figures["traversals"].make(LoadedRun(_as_run(source), shows_input=shows_input))
            with written_whole(packed.path / PICTURE) as draft:
                draft.write_bytes(rendered_as(["png"], figure.figure, 80)["png"])
            caption = figure.caption
    front = yaml.safe_dump(_front_matter(run, name, licence), sort_keys=False, allow_unicode=True)
    text = "\n".join([f"---\n{front}---", f"# {name}", "", *_body(run, name, caption)]) + "\n"
    with written_whole(packed.path / CARD) as draft:
        draft.write_text(text, encoding="utf-8", errors="replace")


def _as_run(folder: RunFolder) -> Run:
    """Return the values of a run, finished or not: a model may be shared without its scores."""
    scores = flat_scores(folder.scores) if folder.scores_file.exists() else {}
    return Run(folder.path, folder.state, flat_settings(folder.facts["settings"]), scores)


def _front_matter(run: Run, name: str, licence: str | None) -> dict[str, Any]:
    """Return the metadata that the Hub reads; only public datasets are named."""
    dataset = str(run.value("dataset"))
    front: dict[str, Any] = {"library_name": "lddr"} | ({"license": licence} if licence else {})
    front["tags"] = ["disentanglement", "representation-learning", "vae", str(run.value("model"))]
    front |= {"datasets": [dataset]} if dataset in datasets else {}
    scores = [metric for metric in headlines([run]) if metric in run.files.metrics]
    if not scores:
        return front
    values = [{"type": metric, "name": metric_title(metric), "value": run.scores[metric]} for metric in scores]
    source = {"type": dataset, "name": dataset_title(dataset)}
    result = {"task": {"type": "feature-extraction"}, "dataset": source, "metrics": values}
    return front | {"metrics": scores, "model-index": [{"name": name, "results": [result]}]}


def _body(run: Run, name: str, caption: str | None) -> Iterator[str]:
    files, config = run.files, run.files.config
    shape = "x".join(map(str, files.images.get("shape", [])))
    model = f"{method_title(run)} trained on {dataset_title(config.dataset)}" + (f" ({shape})" if shape else "")
    training = config.training
    yield f"{files.about} " * bool(files.about) + f"A {model} for {training.steps:,} steps with seed {training.seed}."
    yield from ("", "```python", "import lddr", "", f'model = lddr.Trained.from_pretrained("{name}")')
    yield from ("codes = model.represent(images)  # (count, latents)", "```")
    if caption is not None:
        yield from ("", f"![Traversals of the latents]({PICTURE})", "", caption)
    if files.samples_file.exists():
        yield from ("", "## Samples", f"![Images of the training set]({SAMPLES})", "")
        yield "Some images of the training set, `model.samples` in Python."
    if run.scores:
        yield from ("", "## Scores", "| score | value |", "| --- | ---: |")
        yield from (f"| {metric_title(score)} | {shown(run.scores[score])} |" for score in headlines([run]))
    yield from ("", "## Settings", "| setting | value |", "| --- | --- |")
    settings = {setting: value for setting, value in run.settings.items() if setting != "checksum"}
    yield from (f"| {setting} | {'none' if value is None else shown(value)} |" for setting, value in settings.items())
    yield from ("", "## Reproduce", "```sh", shlex.join(train_words(config)), "```")
    yield f"Made with {', '.join(f'{part} {version}' for part, version in files.versions.items()) or 'lddr'}."


def push(
    trained: Trained,
    repository: str,
    private: bool | None = None,
    token: str | None = None,
    revision: str | None = None,
    licence: str | None = None,
    samples: int = 0,
) -> str:
    """Upload a model with its card in one commit, creating the repository if it is new; return its address."""
    check_installed("huggingface_hub")
    from huggingface_hub import CommitOperationAdd, HfApi

    api = HfApi(token=token, library_name="lddr", library_version=lddr.__version__)
    with TemporaryDirectory() as place:
        packed = pack(trained, Path(place), samples=samples)
        if packed.samples_file.exists():
            say(f"{SAMPLES} shows images of the training set, and is uploaded as you asked")
        elif packed.config.dataset not in datasets:
            kept = f"your images are not uploaded, except for the reconstruction of one in {PICTURE}"
            say(f"{kept}; with samples=16 (--samples 16) others get some to start traversals from")
        with _hub_errors(f"cannot push to {repository}"):
            created = api.create_repo(repository, private=private, exist_ok=True)
            if revision is not None:
                api.create_branch(created.repo_id, branch=revision, exist_ok=True)
        write_model_card(packed, created.repo_id, run_of(trained), licence)
        files = [packed.path / name for name in FILES if (packed.path / name).exists()]
        additions = [CommitOperationAdd(file.name, file) for file in files]
        with _hub_errors(f"cannot push to {repository}"):
            api.create_commit(created.repo_id, additions, commit_message="Add a model of lddr", revision=revision)
    return str(created)


def pull(repository: str, revision: str | None = None, token: str | None = None) -> Trained:
    """Return the model of a repository, downloading it unless it is cached; its files are checked as in any run."""
    check_installed("huggingface_hub")
    from huggingface_hub import snapshot_download

    options: dict[str, Any] = {"allow_patterns": list(FILES), "library_name": "lddr"}
    with _hub_errors(f"there is no folder {repository}, and the Hugging Face Hub has no such model"):
        folder = RunFolder(snapshot_download(repository, revision=revision, token=token, **options))
    if not folder.model_file.exists():
        raise UserError(f"{repository} is no model of lddr: it has no {MODEL}; choose another repository")
    try:
        trained = Trained.load(folder.path)
        if folder.is_run and folder.config != trained.config:
            raise UserError(f"{CONFIG} holds other settings than {MODEL}")
    except UserError as error:
        words = str(error).replace(f"{folder.path}/", "")
        raise UserError(f"{repository} is no model of lddr that can be used: {words}") from error
    return trained


@contextmanager
def _hub_errors(failure: str) -> Iterator[None]:
    """Raise a `UserError` that says what to do for any error on the way to the Hub."""
    try:
        yield
    except Exception as error:  # network libraries raise errors of many types
        raise UserError(f"{failure}{_hub_reason(error)}") from error


def _hub_reason(error: Exception) -> str:
    from huggingface_hub import errors

    match error:
        case errors.HFValidationError():
            return f": a repository is called OWNER/NAME ({reason_of(error)})"
        case errors.LocalTokenNotFoundError():
            return f": you are not logged in; {LOGIN}"
        case errors.RevisionNotFoundError():
            return ": there is no such revision; correct it or leave it out"
        case errors.GatedRepoError():
            return ": its owner has to grant you access; ask on its page, then log in"
        case errors.HfHubHTTPError() if error.response.status_code == 401:
            return f": the Hub does not know you, or there is no repository of this name; {LOGIN}"
        case errors.RepositoryNotFoundError():
            return f": there is no repository of this name, or it is private; correct the name, or {LOGIN}"
        case errors.HfHubHTTPError() if error.response.status_code == 403:
            return ": you may not write there; choose a name of your own, or a token that may write"
        case errors.HfHubHTTPError():
            return f": the Hub says {reason_of(error)}; try again later"
    cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
    return f" ({reason_of(cause)}); check the connection and try again"
