"""What a figure of a report is: a name, a caption and a drawing of many runs or of one; and which runs go into it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from lddr.errors import UserError
from lddr.metrics.metric import UndefinedError
from lddr.registry import Registry
from lddr.report.style import DATASETS, styled
from lddr.runs.index import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lddr.data.dataset import Dataset, Images
    from lddr.trained import Trained

COMPARABLE = ("resolution", "checksum", "steps", "batch_size", "learning_rate", "precision")  # on one dataset


Source = TypeVar("Source")  # what is drawn: many runs, or one
Draw = Callable[[Source], "Figure"]


@dataclass(frozen=True)
class ReportFigure(Generic[Source]):
    """A figure; `draw` and `caption` raise UndefinedError, one sentence, where the runs do not allow it."""

    name: str
    title: str
    order: int  # its place on a page
    draw: Draw[Source]
    caption: Callable[[Source], str]


figures: Registry[ReportFigure[Sequence[Run]]] = Registry("figure", homes=("lddr.report",))
run_figures: Registry[ReportFigure[Run]] = Registry("figure of a run", homes=("lddr.report",))


def figure(
    registry: Registry[ReportFigure[Source]], name: str, title: str, order: int, caption: Callable[[Source], str]
) -> Callable[[Draw[Source]], Draw[Source]]:
    """Decorator: make a drawing a figure of reports or of model cards, in the house style."""

    def add(draw: Draw[Source]) -> Draw[Source]:
        drawing = styled(draw)
        registry.register(name)(ReportFigure(name, title, order, drawing, caption))
        return drawing

    return add


def in_order(registry: Registry[ReportFigure[Source]]) -> list[ReportFigure[Source]]:
    """All figures of a registry as they follow each other on a page."""
    return sorted((registry[name] for name in registry), key=lambda drawn: drawn.order)


def unsupervised(runs: Sequence[Run]) -> list[Run]:
    """The finished runs that saw no labels."""
    return [run for run in runs if run.state == "finished" and run.value("supervision") is None]


def supervised(runs: Sequence[Run]) -> list[Run]:
    """The finished runs that saw labels."""
    return [run for run in runs if run.state == "finished" and run.value("supervision") is not None]


def by_dataset(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs of every dataset, the paper's first; runs of one dataset that cannot be compared are refused."""
    names = [str(run.value("dataset")) for run in runs]
    groups: dict[str, list[Run]] = {
        name: [] for name in [*DATASETS, *sorted(set(names) - DATASETS.keys())] if name in names
    }
    for name, run in zip(names, runs, strict=True):
        groups[name].append(run)
    for dataset, members in groups.items():
        for name in COMPARABLE:
            values = {run.value(name) for run in members}
            if len(values) > 1:
                raise UndefinedError(
                    f"the runs on {dataset} differ in {name} ({', '.join(sorted(map(str, values)))}); give one kind"
                )
    return groups


def of_model(runs: Sequence[Run], model: str) -> list[Run]:
    return [run for run in runs if run.value("model") == model]


def scores_of(runs: Sequence[Run], name: str) -> list[float]:
    """The score of every run that has it."""
    return [value for run in runs if (value := run.number(name)) is not None]


def model_of(run: Run) -> "Trained":
    """The run's model, for figures that look into it."""
    from lddr.trained import Trained

    try:
        return Trained.load(run.folder)
    except UserError as error:
        raise UndefinedError(f"the model of {run.name} cannot be loaded: {error}") from error


def dataset_of(run: Run) -> "Dataset":
    """The images the run was trained on."""
    from lddr.data.load import load_dataset

    resolution = run.number("resolution")
    try:
        return load_dataset(str(run.value("dataset")), None if resolution is None else int(resolution))
    except UserError as error:
        raise UndefinedError(f"the images of {run.name} are not here: {error}") from error


def drawn_images(dataset: "Dataset", count: int) -> "Images":
    """The same images for every model of a dataset."""
    from lddr.data.dataset import stream

    return dataset.draw(stream(0, "pictures"), count)
