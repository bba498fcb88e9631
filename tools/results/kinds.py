"""Which kind of discreteness wins under one protocol: the median of every model, and how sure the first place is."""

from statistics import median

from claims import Lines, table
from estimates import FEW, FEWEST, Estimate, above, resampled
from table import of, read

from lddr.report.groups import scores_of
from lddr.report.palette import house_place
from lddr.report.titles import dataset_title, metric_title, model_title
from lddr.runs.index import Run

SHOWN = ("mig", "dci", "modularity", "sap", "infomec", "mig_sup", "explicitness")
RULE = """\
Each model has the settings its authors published, and networks, data, steps and batches in common. A model comes first
by a metric if its median is the largest; it **wins** if the whole interval of its lead over the second is above 0."""


def told() -> list[str]:
    """The section of the page; nothing before there are runs of a peer."""
    runs = [run for run in read("discrete") if run.value("supervision") is None]
    datasets = [name for name in sorted({str(run.value("dataset")) for run in runs}) if _has_peers(of(runs, name))]
    if not datasets:
        return []
    return ["## Kinds of discreteness", RULE, *("\n".join(_dataset(name, of(runs, name))) for name in datasets)]


def _has_peers(runs: list[Run]) -> bool:
    return any(run.value("latent") not in ("gaussian", "categorical") for run in runs)


def _dataset(dataset: str, runs: list[Run]) -> Lines:
    models = sorted({str(run.value("model")) for run in runs}, key=house_place)
    scores = {name: {model: scores_of(of(runs, dataset, model), name) for model in models} for name in SHOWN}
    known = [name for name in SHOWN if sum(len(values) > 0 for values in scores[name].values()) > 1]
    rows = []
    for model in models:
        cells = [f"{median(values):.3f}" if (values := scores[name][model]) else "–" for name in known]
        rows.append((model_title(model), str(max(len(scores[name][model]) for name in known)), *cells))
    header = (f"{dataset_title(dataset)}, medians", "runs", *map(metric_title, known))
    return [*table(header, rows), "", *(_first(name, scores[name]) for name in known)]


def _first(metric: str, scores: dict[str, list[float]]) -> str:
    able = {model: values for model, values in scores.items() if len(values) >= 2}
    first, second = sorted(able, key=lambda model: -median(able[model]))[:2]
    lead: Estimate = resampled(above, able[first], able[second])
    sure = FEW if lead.runs < FEWEST else "wins" if lead.low > 0 else "not sure"
    return f"- {metric_title(metric)}: {model_title(first)} before {model_title(second)} by {lead.told()}: **{sure}**"
