"""How far the fast DCI is from the published one, and what it saves, over many representations."""

import json
import time
from collections.abc import Callable, Mapping
from functools import partial, reduce
from pathlib import Path
from typing import Any, get_args

import numpy as np
from rich.console import Console
from rich.progress import track

from lddr.data.dataset import stream
from lddr.files import write_json
from lddr.metrics.dci import Estimator, dci
from lddr.metrics.information import Floats, Whole
from lddr.timing import show

SIZES = (3, 6, 40, 32, 32)  # those of dsprites
TRAIN, TEST = 1_000, 1_000  # with the published sizes this would take hours
FULL_TRAIN, FULL_TEST, FULL_LATENTS = 10_000, 5_000, 10  # the published sizes, for the speed of one factor
SEEDS = (1, 2)  # of the published one, in addition to its own: scikit-learn breaks ties at random
STEPS = 400  # of the trained ones: some have learned little by then, and that is wanted
SCORES = ("disentanglement", "completeness", "informativeness")

Representation = tuple[Floats, Whole]  # codes (samples, latents) and factors (samples, factors)


def run_bench(out: Path | None) -> None:
    """Measure, print the tables and write them; what was measured before an interruption is not measured again."""
    import torch

    torch.set_num_threads(1)
    found = representations()
    kept = out.with_name(f"{out.stem}.partial.json") if out is not None else None
    done = {row["representation"]: row for row in json.loads(kept.read_text())} if kept and kept.exists() else {}
    for name in track(found, "measuring", console=Console(stderr=True)):
        if name not in done:
            done[name] = {"representation": name, **measure(*found[name]())}
            if kept is not None:
                write_json(kept, list(done.values()))
    rows = [done[name] for name in found]
    summaries = [summary(rows, score) for score in SCORES]
    full = full_size()
    show(
        [_shown(row) for row in rows], f"published and fast DCI, {TRAIN} train and {TEST} test samples, one core", None
    )
    show([_shown(row) for row in summaries], "the fast one against the published one", None)
    show([_shown(full)], f"one factor of {SIZES[1]} values at the published sizes", None)
    if out is not None and kept is not None:
        write_json(out, {"representations": rows, "summary": summaries, "published sizes": full})
        kept.unlink(missing_ok=True)


def full_size() -> dict[str, float]:
    """The same for one factor, with as many samples and latents as in published scores: there speed counts."""
    generator = stream(0, "bench dci full")
    factors = generator.integers(SIZES, size=(FULL_TRAIN + FULL_TEST, len(SIZES)))
    values = generator.normal(size=(len(factors), FULL_LATENTS))
    values[:, : len(SIZES)] = mixed(2 * factors / (np.array(SIZES) - 1) - 1, generator, 0.33)
    return measure(values, factors[:, 1:2], FULL_TRAIN)


def measure(codes: Floats, factors: Whole, train: int | None = None) -> dict[str, float]:
    """The scores and seconds of both estimators on the same samples, and how far the published one is from itself.

    That is the mean distance of its score from those with other seeds.
    """
    from joblib import parallel_config

    train = train or TRAIN
    parts = codes[:train], factors[:train], codes[train:], factors[train:]
    results, seconds = {}, {}
    for estimator in get_args(Estimator):
        start = time.process_time()  # not the clock on the wall: a busy machine would count twice
        with parallel_config(n_jobs=1):
            results[estimator] = dci(*parts, estimator=estimator)
        seconds[estimator] = time.process_time() - start
    scores = {f"{score}, {name}": getattr(results[name], score) for score in SCORES for name in results}
    with parallel_config(n_jobs=1):
        again = [dci(*parts, seed=seed) for seed in SEEDS]
    for score in SCORES:
        own = getattr(results["published"], score)
        scores[f"{score}, other seeds"] = float(np.mean([abs(own - getattr(each, score)) for each in again]))
    times = {f"seconds, {name}": value for name, value in seconds.items()}
    return scores | times | {"times faster": seconds["published"] / seconds["fast"]}


def summary(rows: list[dict[str, Any]], score: str) -> dict[str, Any]:
    """How far one score is from the published one, and whether it ranks the representations the same way."""
    from scipy.stats import spearmanr

    published, fast = (np.array([row[f"{score}, {name}"] for row in rows]) for name in ("published", "fast"))
    return {
        "score": score,
        "mean absolute difference": float(np.abs(published - fast).mean()),
        "largest absolute difference": float(np.abs(published - fast).max()),
        "mean between seeds": float(np.mean([row[f"{score}, other seeds"] for row in rows])),
        "largest between seeds": float(np.max([row[f"{score}, other seeds"] for row in rows])),
        "rank correlation": float(spearmanr(published, fast).statistic),
    }


def _shown(row: dict[str, Any]) -> dict[str, str]:
    """A row for the screen: scores as D, C and I, the published ones without a word, three decimals."""
    shorter = {score: score[0].upper() for score in SCORES} | {
        ", published": "",
        ", fast": " fast",
        ", other": " other",
    }
    values = {name: value if isinstance(value, str) else f"{value:.3f}" for name, value in row.items()}
    return {reduce(lambda text, pair: text.replace(*pair), shorter.items(), name): values[name] for name in values}


def representations() -> Mapping[str, Callable[[], Representation]]:
    """Codes of many kinds by name, made when they are asked for: synthetic ones of dsprites, and trained ones."""
    made = {name: partial(_synthetic, number, make) for number, (name, make) in enumerate(SYNTHETIC.items())}
    return made | {f"circles, {name}": partial(trained_codes, *settings) for name, settings in TRAINED.items()}


def _synthetic(number: int, make: Callable[[Floats, np.random.Generator], Floats]) -> Representation:
    generator = stream(0, "bench dci", number)
    factors = generator.integers(SIZES, size=(TRAIN + TEST, len(SIZES)))
    return make(2 * factors / (np.array(SIZES) - 1) - 1, generator), factors


def trained_codes(model: str, num_latents: int, steps: int) -> Representation:
    from lddr.data.load import load_dataset
    from lddr.runs.run import Machine
    from lddr.trained import train

    machine = Machine(device="cpu", threads=1, quiet=True)
    trained = train("circles", model, "quick", machine=machine, steps=steps, num_latents=num_latents)
    dataset = load_dataset("circles", trained.config.resolution)
    drawn = dataset.space.sample(stream(0, "bench dci"), TRAIN + TEST)
    return trained.represent(dataset.images(drawn)).astype(np.float64), dataset.space.factors_of(drawn)


def noisy(values: Floats, generator: np.random.Generator, scale: float) -> Floats:
    """The factors, each with noise of this standard deviation; they go from -1 to 1."""
    return values + scale * generator.normal(size=values.shape)


def rotated(values: Floats, generator: np.random.Generator, degrees: float) -> Floats:
    """Rotate the last two factors into each other and add a little noise."""
    angle = np.deg2rad(degrees)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return noisy(np.concatenate([values[:, :3], values[:, 3:] @ turn], axis=1), generator, 0.02)


def mixed(values: Floats, generator: np.random.Generator, share: float) -> Floats:
    """A share of every latent is a random mixture of all factors, bent by a tanh."""
    mixture = np.tanh(values @ generator.normal(size=(values.shape[1], values.shape[1])))
    return noisy((1 - share) * values + share * mixture, generator, 0.02)


def quantised(values: Floats, num_values: int = 64) -> Floats:
    """To the nearest of some equally spaced values in [-1, 1]."""
    return np.round((values.clip(-1, 1) + 1) / 2 * (num_values - 1)) / (num_values - 1) * 2 - 1


def expected(values: Floats, generator: np.random.Generator, width: float) -> Floats:
    """As a D-VAE: the expectation over 64 positions with logits around the value, wider or narrower, and noisy."""
    from scipy.special import softmax

    positions = np.linspace(-1, 1, 64)
    logits = -(((values[..., np.newaxis] - positions) / width) ** 2)
    return softmax(logits + generator.normal(size=logits.shape), axis=-1) @ positions


def copied(values: Floats, generator: np.random.Generator) -> Floats:
    """Both positions in one latent, and the orientation in two noisy ones."""
    columns = [values[:, 0], values[:, 1], values[:, 2], values[:, 2], values[:, 3] + values[:, 4]]
    return noisy(np.stack(columns, axis=1), generator, 0.05)


SYNTHETIC: dict[str, Callable[[Floats, np.random.Generator], Floats]] = {
    "perfect": lambda values, generator: values,
    "permuted, and a dead latent": lambda values, generator: np.insert(-values[:, ::-1], 2, 0, axis=1),
    "noise 0.05": partial(noisy, scale=0.05),
    "nothing but noise": lambda values, generator: generator.normal(size=values.shape),
    "rotated by 10°": partial(rotated, degrees=10),
    "rotated by 45°": partial(rotated, degrees=45),
    "mixed by a third": partial(mixed, share=0.33),
    "mixed wholly": partial(mixed, share=1.0),
    "mixed by a third, 64 values": lambda values, generator: quantised(mixed(values, generator, 0.33)),
    "noise 0.1, 64 values": lambda values, generator: quantised(noisy(values, generator, 0.1)),
    "D-VAE, narrow": partial(expected, width=0.05),
    "D-VAE, wide": partial(expected, width=0.3),
    "one copied, two in one": copied,
}
TRAINED = {
    f"{model}, {latents} latents": (model, latents, STEPS)
    for model, latents in (
        ("dvae", 2),
        ("dvae", 4),
        ("beta-dvae", 2),
        ("tc-dvae", 3),
        ("vae", 2),
        ("beta-vae", 3),
        ("beta-tcvae", 4),
    )
}
