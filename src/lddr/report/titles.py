"""Titles of datasets, models and metrics, and the mark of scores from few samples."""

from pathlib import Path

from lddr.runs.index import Run

FEW = 5  # runs from which on a median is shown without a mark, and as a violin
MARK = "△"
MEANING = "of fewer than five runs of a model: too few to conclude anything from"


def few_mark(count: int) -> str:
    """The mark, if these are few."""
    return MARK if count < FEW else ""


def few_told(*texts: str) -> str:
    """A sentence that explains the mark, if one of these texts has it."""
    return f" {MARK}: {MEANING}." if any(MARK in text for text in texts) else ""


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
