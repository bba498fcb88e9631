"""Invented runs, and groups of them."""

from pathlib import Path

from lddr.report.groups import Group
from lddr.runs.index import Run


def invented(model="dvae", dataset="circles", scores=None, folder=None, **settings):
    """A finished run with these scores; it has no files."""
    place = folder or Path("-".join([dataset, model, *(f"{name}={value}" for name, value in settings.items())]))
    return Run(place, "finished", {"dataset": dataset, "model": model} | settings, scores or {})


def grouped(runs):
    """A group for each dataset, in the order in which they come."""
    members = {}
    for run in runs:
        members.setdefault(run.value("dataset"), []).append(run)
    return [Group(dataset, tuple(found), {"dataset": dataset}) for dataset, found in members.items()]


def runs_of(model, dataset, metric, values, **settings):
    """A run with each of these values of a metric."""
    return [
        invented(model, dataset, seed=seed, scores={metric: value}, **settings) for seed, value in enumerate(values)
    ]


def gapped_runs(dataset="circles", model="dvae", gaps=(3.0, 1.0, 2.0, 4.0)):
    """MIG falls as the gap grows, but for DCI, which rises; the ELBO has one pair in the wrong order."""
    elbos = {3.0: -30.0, 1.0: -20.0, 2.0: -10.0, 4.0: -40.0}
    return [
        invented(model, dataset, seed=seed, scores={"gap": gap, "mig": 1 / gap, "dci": gap / 10, "elbo": elbos[gap]})
        for seed, gap in enumerate(gaps)
    ]


def cell(table, row, column):
    """The cell of a row, by its label, in a column, by its heading."""
    (line,) = [line for line in table.rows if line[0] == row]
    return line[table.columns.index(column)]


def labelled(model, loss, scores, labels=100, seed=0):
    """A semi-supervised run."""
    return invented(model, scores=scores, supervision=loss, labels=labels, seed=seed)
