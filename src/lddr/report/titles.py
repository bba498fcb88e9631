"""The names people know, of models, methods, datasets and metrics."""

from pathlib import Path

from lddr.runs.index import Run

ABBREVIATED = 3  # letters of a loss that is written in capitals: BCE, L2


def model_title(model: str) -> str:
    """Of dvae: "D-VAE"."""
    from lddr.models import models

    return models[model].title if model in models else model


def method_title(run: Run) -> str:
    """The model with its supervision: "D-VAE, masked"."""
    title, loss = model_title(str(run.value("model"))), run.value("supervision")
    if loss is None:
        return title
    return f"{title}, {str(loss).upper() if len(str(loss)) <= ABBREVIATED else loss}"


def dataset_title(dataset: str) -> str:
    """Of own images, the last part of their path."""
    from lddr.data.dataset import datasets

    return datasets[dataset].title if dataset in datasets else Path(dataset).stem or dataset


def metric_title(metric: str) -> str:
    """A metric's name as it stands on an axis."""
    from lddr.metrics.metric import metrics

    return metrics[metric].title if metric in metrics else metric
