"""The card of a model that is given away: README.md, which says what it is and how to use it, and a picture."""

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from lddr.command import train_words
from lddr.data.dataset import datasets
from lddr.errors import UserError
from lddr.files import written_whole
from lddr.report.exhibits import card_figures
from lddr.report.style import dataset_title, method_title, metric_title, rendered_as
from lddr.report.traversals import LoadedRun
from lddr.runs.folder import RunFolder
from lddr.runs.index import Run, flat_scores, flat_settings
from lddr.runs.tables import headlines, shown

CARD, PICTURE = "README.md", "traversals.png"
DPI = 80


def write_card(packed: RunFolder, name: str, source: RunFolder | None, licence: str | None = None) -> None:
    """Write the card of a packed run; the picture needs the run it is of, and its images."""
    run, told = _as_run(packed), None if source is None else _draw(_as_run(source), packed.path / PICTURE)
    lines = ["---", *_yaml(_front(run, name, licence)), "---", f"# {name}", "", *_body(run, name, told)]
    with written_whole(packed.path / CARD) as draft:
        draft.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")


def _as_run(folder: RunFolder) -> Run:
    """Finished or not, since a model may be given away without its scores."""
    scores = flat_scores(folder.scores) if folder.scores_file.exists() else {}
    return Run(folder.path, folder.state, flat_settings(folder.facts["settings"]), scores)


def _draw(run: Run, path: Path) -> str | None:
    """The picture beside the card; gives the sentences below it, or nothing where it cannot be drawn."""
    with suppress(UserError):
        drawn = card_figures["traversals"].make(LoadedRun(run))
        with written_whole(path) as draft:
            draft.write_bytes(rendered_as(["png"], drawn.figure, DPI)["png"])
        return drawn.caption
    return None


def _front(run: Run, name: str, licence: str | None) -> dict[str, Any]:
    """What the Hugging Face Hub reads of a card; only datasets that everybody has are named."""
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


def _body(run: Run, name: str, told: str | None) -> Iterator[str]:
    files, config = run.files, run.files.config
    shape = "x".join(map(str, files.images.get("shape", [])))
    what = f"{method_title(run)} trained on {dataset_title(config.dataset)}" + (f" ({shape})" if shape else "")
    training = config.training
    yield f"{files.about} " * bool(files.about) + f"A {what} for {training.steps:,} steps with seed {training.seed}."
    yield from ("", "```python", "import lddr", "", f'model = lddr.Trained.from_pretrained("{name}")')
    yield from ("codes = model.represent(images)  # (count, latents)", "```")
    if told is not None:
        yield from ("", f"![Traversals of the latents]({PICTURE})", "", told)
    if run.scores:
        yield from ("", "## Scores", "| score | value |", "| --- | ---: |")
        yield from (f"| {metric_title(score)} | {shown(run.scores[score])} |" for score in headlines([run]))
    yield from ("", "## Settings", "| setting | value |", "| --- | --- |")
    yield from (f"| {setting} | {'none' if value is None else shown(value)} |" for setting, value in _settings(run))
    yield from ("", "## Make it again", "```sh", shlex.join(train_words(config)), "```")
    yield f"Made with {', '.join(f'{part} {version}' for part, version in files.versions.items()) or 'lddr'}."


def _settings(run: Run) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in run.settings.items() if name != "checksum"]


def _yaml(content: Mapping[str, Any] | list[Any], indent: str = "") -> Iterator[str]:
    """Plain values as YAML, whose scalars may be written as in JSON."""
    entries = content.items() if isinstance(content, Mapping) else ((None, value) for value in content)
    for key, value in entries:
        head = f"{indent}{key}:" if key is not None else f"{indent}-"
        if isinstance(value, Mapping | list):
            inner = list(_yaml(value, f"{indent}  "))
            if key is None:  # the first line of what is in a list stands beside its dash
                yield f"{head} {inner[0].strip()}"
                yield from inner[1:]
            else:
                yield head
                yield from inner
        else:
            yield f"{head} {json.dumps(value, ensure_ascii=False)}"
