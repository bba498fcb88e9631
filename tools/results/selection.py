"""Which selector deserves trust: how it orders models, and what choosing by it costs, by a rule fixed before."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
from claims import Lines, table
from pools import Pool, pools

from lddr.report.style import dataset_title, metric_title
from lddr.selection.selectors import all_but_seed

SIZES = (5, 10, 20)  # models to choose from
RULE_SIZE, DRAWS = 10, 5_000
EXACT = 50_000  # draws for the order by the rule: regrets to a hundredth
OTHER = "dci"  # told beside the regret in MIG, which is what counts
WANTED, ENOUGH = 3, 50  # datasets, and models of each, to name a winner
HALVES, FEWER_DRAWS = 100, 200  # to see how sure the first place is
FEW = 5  # seeds of the smallest kinds of models
RULE = f"""\
The rule: the winner has the lowest mean regret in MIG over datasets when it chooses from {RULE_SIZE} models at random.
Regret is what the best of them has more than the chosen one, over what the best has more than their median: 0 is the
best model, 1 the median one. Mean ranks of two selectors take part: the best of them is chosen on the models with even
seeds, and wins if for those with odd ones it has less regret than any selector by itself. (That it wins was said when
34 models on dSprites and none but D-VAEs on rooms were there, then of a pair that is better on odd seeds than the one
selector that is best on even ones. By that `crispness+discreteness` would have won with all models there, and chosen
worse on odd seeds than the median model; it was mended then. Regrets in the first table were of 2 000 random sets
until then, by which PIPE with a small judge came 0.005 before `gap`; with more sets the two are equal.)
A selector that compares models compares those it may choose from, no others.
How sure the first place is: how often the same selector has it when half of the models, at random, are left out. That
was added when 21 models on Circles had been seen, the scores of `independence` there after that, too.

`pipe` has no row. These runs were scored with a small judge, of eight channels and without batch normalisation, which
is not the published one and orders models differently; they have not been scored again with the published judge. Until
that was found these scores took part and came second, with a mean regret of 0.64. Without them the rows of the other
selectors are the same; only who comes first in random halves of the models has changed. They are still in the tables of
runs, as `pipe_small_judge`."""

ONE_KIND = f"""\
### Among seeds of one kind of model
Kinds have [gaps of their own](#a-small-gap-goes-with-disentanglement), and many choose among seeds of one model alone.
Regrets when there is one kind to choose from: the D-VAE, {RULE_SIZE} models at random; then all other kinds
together, {FEW} models of each, which count by what there is to lose. Added when all of them had been seen, so nothing
is judged by it; of ten models on rooms there is one choice alone."""


@dataclass(frozen=True)
class Choosing:
    """What choosing from so many models gives on average."""

    regret: float  # 0 is the best, 1 the median model
    lost: float  # best minus chosen, in MIG
    gained: float  # chosen minus median, in MIG


def choosing(
    pool: Pool, selector: str, size: int, among: np.ndarray | None = None, draws: int = DRAWS, metric: str = "mig"
) -> Choosing:
    """Over random sets of models; ties share what they give."""
    generator = np.random.default_rng(size)
    members = pool.everyone if among is None else among
    size = min(size, len(members))
    count = draws if size < len(members) else 1
    drawn = generator.permuted(np.tile(members, (count, 1)), axis=1)[:, :size]
    truth, liked = pool.truth(metric)[drawn], pool.preference(selector, drawn)
    is_chosen = liked == liked.max(axis=1, keepdims=True)
    chosen = float(((truth * is_chosen).sum(1) / is_chosen.sum(1)).mean())
    best, median = float(truth.max(axis=1).mean()), float(np.median(truth, axis=1).mean())
    return Choosing((best - chosen) / (best - median), best - chosen, chosen - median)


def told() -> list[str]:
    """The section of the page."""
    if not pools():
        return []
    order, found = _ordered()
    parts = ["## Choosing a model without labels", RULE, _who_is_there(), "\n".join(_regrets(order, found))]
    parts += [_winner(order), "\n".join(_sizes(order[:6])), "\n".join(_correlations(order)), _combination()]
    return [*parts, ONE_KIND, "\n".join(_one_kind(order))]


def winner() -> str | None:
    """The first by the rule, once there are enough models of enough datasets."""
    if sum(len(pool.runs) >= ENOUGH for pool in pools()) < WANTED:
        return None
    order, duel = _ordered()[0], _duel()
    return duel.pair if duel.odd[duel.pair] < min(duel.odd[name] for name in order) else order[0]


@cache
def _ordered() -> tuple[list[str], dict[str, dict[str, Choosing]]]:
    """Selectors that all datasets have, by their mean regret, and what choosing by each of them gives."""
    names = [name for name in pools()[0].selectors if all(name in pool.selectors for pool in pools())]
    found = {name: {pool.dataset: choosing(pool, name, RULE_SIZE, draws=EXACT) for pool in pools()} for name in names}
    return sorted(names, key=lambda name: float(np.mean([one.regret for one in found[name].values()]))), found


def mean_regret(selector: str, among: Sequence[np.ndarray], draws: int = DRAWS) -> float:
    """Over datasets, of each of which some models are there."""
    each = zip(pools(), among, strict=True)
    return float(np.mean([choosing(pool, selector, RULE_SIZE, some, draws).regret for pool, some in each]))


def _winner(order: Sequence[str]) -> str:
    generator, first = np.random.default_rng(0), Counter[str]()
    for _ in range(HALVES):
        halves = [generator.permutation(pool.everyone)[: len(pool.runs) // 2] for pool in pools()]
        first[min(order, key=lambda name: mean_regret(name, halves, FEWER_DRAWS))] += 1
    told = ", ".join(f"`{name}` in {count}" for name, count in first.most_common(4))
    there = f"no winner yet, which takes {ENOUGH} models on each of {WANTED} datasets"
    first_place = f"By itself `{order[0]}` has the least regret{'' if winner() else f' so far: {there}'}."
    return f"{first_place} Of {HALVES} random halves of the models, who has it: {told}."


def _who_is_there() -> str:
    told = ", ".join(f"{len(pool.runs)} on {dataset_title(pool.dataset)}" for pool in pools())
    return f"Categorical models: {told}."


def _regrets(order: Sequence[str], found: Mapping[str, Mapping[str, Choosing]]) -> Lines:
    rows = []
    for name in order:
        per = [f"{one.regret:.2f} ({one.gained:+.3f})".replace("-", "−") for one in found[name].values()]
        others = [choosing(pool, name, RULE_SIZE, metric=OTHER).regret for pool in pools() if OTHER in pool.metrics]
        rows.append(
            (name, f"{np.mean([one.regret for one in found[name].values()]):.2f}", *per, f"{np.mean(others):.2f}")
        )
    titles = [f"{dataset_title(pool.dataset)} (MIG over the median)" for pool in pools()]
    return table(("selector", "mean regret", *titles, f"mean regret in {metric_title(OTHER)}"), rows)


def _sizes(names: Sequence[str]) -> Lines:
    sizes = {pool.dataset: [*(n for n in SIZES if n < len(pool.runs)), len(pool.runs)] for pool in pools()}
    header = [f"{dataset_title(pool.dataset)}, {size}" for pool in pools() for size in sizes[pool.dataset]]
    rows = [
        (name, *(f"{choosing(pool, name, size).regret:.2f}" for pool in pools() for size in sizes[pool.dataset]))
        for name in names
    ]
    return ["How the regret changes with the number of models to choose from:", "", *table(("selector", *header), rows)]


def _correlations(order: Sequence[str]) -> Lines:
    lines: Lines = []
    for pool in pools():
        rows = [(name, *(one.told(2) for one in pool.correlations(name, pool.metrics))) for name in order]
        lines += ["", f"Rank correlations with the metrics, {dataset_title(pool.dataset)}:", ""]
        lines += table(("selector", *map(metric_title, pool.metrics)), rows)
    return lines[1:]


def _one_kind(names: Sequence[str]) -> Lines:
    """What choosing among the seeds of the largest kind costs, on every dataset, and among those of each other kind."""
    kinds = [_kinds(pool) for pool in pools()]
    header, columns = ["selector", "mean regret"], []
    for pool, (largest, *_) in zip(pools(), kinds, strict=True):
        header.append(f"{dataset_title(pool.dataset)}, {len(largest)} D-VAEs")
        columns.append({name: choosing(pool, name, RULE_SIZE, largest).regret for name in names})
    mean = {name: float(np.mean([column[name] for column in columns])) for name in names}
    for pool, (_, *others) in zip(pools(), kinds, strict=True):
        if others:
            header.append(f"{dataset_title(pool.dataset)}, {len(others)} other kinds")
            columns.append({name: _regret_over_kinds(pool, name, others) for name in names})
    rows = [
        (name, f"{mean[name]:.2f}", *(f"{column[name]:.2f}" for column in columns))
        for name in sorted(names, key=mean.get)
    ]
    return table(header, rows)


def _kinds(pool: Pool) -> list[np.ndarray]:
    """The models of each kind, the D-VAEs that begin as usual first: the largest kind everywhere."""
    found: dict[object, list[int]] = {}
    for place, run in enumerate(pool.runs):
        found.setdefault(all_but_seed(run), []).append(place)
    return [pool.everyone[some] for some in sorted(found.values(), key=len, reverse=True) if len(some) >= FEW]


def _regret_over_kinds(pool: Pool, selector: str, kinds: Sequence[np.ndarray]) -> float:
    """Regret over several kinds, each weighed by what there is to lose."""
    each = [choosing(pool, selector, FEW, some) for some in kinds]
    return sum(one.lost for one in each) / sum(one.lost + one.gained for one in each)


@dataclass(frozen=True)
class Duel:
    """The best pair of selectors and the best by itself, both chosen on even seeds; regrets on both halves."""

    pair: str
    single: str
    even: Mapping[str, float]
    odd: Mapping[str, float]


@cache
def _duel() -> Duel:
    halves = [[pool.everyone[_seeds(pool) % 2 == odd] for pool in pools()] for odd in (0, 1)]
    even, odd = ({name: mean_regret(name, half) for name in _ordered()[0]} for half in halves)
    six = sorted(even, key=lambda name: even[name])[:6]  # odd seeds have no part in it
    pairs = {"+".join(pair): mean_regret("+".join(pair), halves[0]) for pair in combinations(six, 2)}
    pair = min(pairs, key=lambda name: pairs[name])
    return Duel(pair, six[0], even | {pair: pairs[pair]}, odd | {pair: mean_regret(pair, halves[1])})


def _combination() -> str:
    duel = _duel()
    pair, single, best = duel.pair, duel.single, min(duel.odd, key=lambda name: duel.odd[name])
    told = (
        f"Mean ranks of two of the six best: on even seeds `{pair}` is best ({duel.even[pair]:.2f}), by itself "
        f"`{single}` ({duel.even[single]:.2f}). On odd seeds, which had no part in that choice: "
        f"{duel.odd[pair]:.2f} and {duel.odd[single]:.2f}; the best there is `{best}` ({duel.odd[best]:.2f})."
    )
    return f"{told} **By the rule `{winner()}` wins**, and is what `lddr select` chooses by." if winner() else told


def _seeds(pool: Pool) -> np.ndarray:
    return np.array([int(run.value("seed") or 0) for run in pool.runs])
