"""Which kind of discreteness wins under one protocol: the median of every model, and how sure the first place is."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import mean, median

import costs
from claims import Lines, table
from estimates import FEW, FEWEST, SHOWN, Estimate, above, resampled
from table import RESULTS, of, read

from lddr.metrics.metric import SIX_METRICS
from lddr.report.groups import scores_of
from lddr.report.style import dataset_title, house_place, metric_title, model_title
from lddr.runs.index import Run

PICTURE = RESULTS / "discrete" / "scores.png"
METRICS = (*SIX_METRICS, "infomec", "mig_sup", "explicitness")
TITLE = "Kinds of discreteness"
RULE = """\
Each model has the weights of losses its authors published, and networks, data, steps, batches and learning rate in
common; the peers are published with 50,000 to 250,000 steps. FactorQVAE has the FactorDVAE's discriminator here, and
QLAE clips all gradients; both are published otherwise. A model comes first by a metric if its median is the largest;
it **wins** if the whole interval of its lead over the second is above 0. It wins as a kind if it wins by at least half
of the metrics on every dataset. The mean place over metrics and datasets, and that rule, were added when all models but
the peers (FSQ, QLAE, Tripod, FactorQVAE) and one QLAE had been seen."""
Scores = dict[str, dict[str, list[float]]]  # metric → model → a number for each run


def told() -> list[str]:
    """The section of the page; nothing before there are runs of a peer."""
    runs = [run for run in read("discrete") if run.value("supervision") is None]
    datasets = [name for name in sorted({str(run.value("dataset")) for run in runs}) if _has_peers(of(runs, name))]
    if not datasets:
        return []
    scores = {name: _scores(of(runs, name)) for name in datasets}
    by_dataset = ["\n".join(_dataset(name, of(runs, name), scores[name])) for name in datasets]
    picture = [f"![{TITLE}]({PICTURE.relative_to(RESULTS)})"] * PICTURE.exists()
    return [f"## {TITLE}", RULE, "\n".join(_standing(scores)), *picture, *by_dataset]


def _standing(scores: Mapping[str, Scores]) -> Lines:
    """Every model's mean place, what a step of it costs, and who wins as a kind."""
    models = sorted(set.intersection(*(set(_models(some)) for some in scores.values())), key=house_place)
    places: dict[str, list[int]] = {model: [] for model in models}
    for able in (able for some in scores.values() for able in some.values() if able.keys() >= set(models)):
        order = sorted(models, key=lambda model: -median(able[model]))
        for place, model in enumerate(order, start=1):
            places[model].append(place)
    cost = costs.read()
    rows = [
        (model_title(model), f"{mean(places[model]):.1f}", str(places[model].count(1)), _told_cost(cost.get(model)))
        for model in sorted(models, key=lambda model: mean(places[model]))
    ]
    cases = len(places[models[0]])
    return [*table((f"{cases} cases", "mean place", "first in", "ms a step on dSprites"), rows), "", _winner(scores)]


def _told_cost(milliseconds: float | None) -> str:
    return "–" if milliseconds is None else f"{milliseconds:.0f}"


def _winner(scores: Mapping[str, Scores]) -> str:
    winners = [[_first(able).winner for able in some.values()] for some in scores.values()]
    kinds = {model for model in winners[0] if model and all(2 * own.count(model) >= len(own) for own in winners)}
    return " and ".join(map(model_title, sorted(kinds))) + ": **wins as a kind**" if kinds else "**No kind wins.**"


def _has_peers(runs: list[Run]) -> bool:
    return any(run.value("latent") not in ("gaussian", "categorical") for run in runs)


def _models(scores: Scores) -> list[str]:
    return sorted({model for able in scores.values() for model in able}, key=house_place)


def _scores(runs: list[Run]) -> Scores:
    """Of every metric that two models have, with two runs each at least."""
    models = {str(run.value("model")) for run in runs}
    found = {name: {model: scores_of(of_model(runs, model), name) for model in models} for name in METRICS}
    able = {name: {model: values for model, values in some.items() if len(values) > 1} for name, some in found.items()}
    return {name: some for name, some in able.items() if len(some) > 1}


def of_model(runs: list[Run], model: str) -> list[Run]:
    return [run for run in runs if run.value("model") == model]


def _dataset(dataset: str, runs: list[Run], scores: Scores) -> Lines:
    rows = []
    for model in _models(scores):
        cells = [f"{median(able[model]):.3f}" if model in able else "–" for able in scores.values()]
        rows.append((model_title(model), str(len(of_model(runs, model))), *cells))
    header = (f"{dataset_title(dataset)}, medians", "runs", *map(metric_title, scores))
    return [
        *table(header, rows),
        "",
        *(f"- {metric_title(name)}: {_first(able).told}" for name, able in scores.items()),
    ]


@dataclass(frozen=True)
class First:
    """Who has the largest median by a metric, by how much, and how sure that is."""

    model: str
    second: str
    lead: Estimate

    @property
    def winner(self) -> str | None:
        return self.model if self.lead.verdict() == SHOWN else None

    @property
    def told(self) -> str:
        sure = FEW if self.lead.runs < FEWEST else "wins" if self.winner else "not sure"
        return f"{model_title(self.model)} before {model_title(self.second)} by {self.lead.told()}: **{sure}**"


def _first(able: Mapping[str, list[float]]) -> First:
    first, second = sorted(able, key=lambda model: -median(able[model]))[:2]
    return First(first, second, resampled(above, able[first], able[second]))
