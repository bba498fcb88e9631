"""Draw the gallery again: python docs/gallery/draw.py CIRCLES-RUNS RUN MASKED-RUN [FIGURE…]

Figures that need hundreds of runs are drawn from scores made up here, and say so in their titles.
"""

import sys
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from lddr.files import written_whole
from lddr.report.figures import figures, run_figures
from lddr.report.pictures import write_traversals
from lddr.report.style import SIX_METRICS, rendered
from lddr.runs.index import Run, list_runs

HERE = Path(__file__).parent
DRAWINGS = ("circles.png", "circles-vae.png", "circles-dvae.png", "metrics.png")
PICTURES = ("run-traversals.png", "run-reconstructions.png")
DPI = {"traversals": 80}
DATASETS = ("circles", "sprites", "rooms")
FROM_RUNS = ("observations", "gumbel-softmax", "circles", "circles-vae", "circles-dvae", "curves", "rate-distortion")
MADE_UP = ("selectors", "selectors-combined", "efficiency", "metrics", "mig", "semi-supervised")
WEIGHTS = dict(zip(SIX_METRICS, (0.4, 0.6, 1.0, 0.9, 0.5, 0.7), strict=True))  # how much of the quality they show
OF_A_RUN = ("curves", "reconstructions", "traversals", "information", "posterior")


def made_up_runs() -> list[Run]:
    """Scores around a hidden quality of each run; discrete models have a little more of it."""
    generator = np.random.default_rng(0)
    return [*_unsupervised(generator), *_supervised(generator)]


def _unsupervised(generator: np.random.Generator) -> Iterator[Run]:
    levels = {"vae": 0.25, "factor-vae": 0.3, "dvae": 0.4, "factor-dvae": 0.45}
    for dataset in DATASETS:
        for model, level in levels.items():
            bonus = generator.uniform(-0.1, 0.1)
            for seed in range(40):
                yield _run(generator, dataset, model, seed, level + bonus)


def _supervised(generator: np.random.Generator) -> Iterator[Run]:
    methods = {
        ("vae", "bce"): 0.45,
        ("vae", "l2"): 0.43,
        ("factor-vae", "bce"): 0.46,
        ("dvae", "cross-entropy"): 0.46,
        ("dvae", "masked"): 0.5,
        ("factor-dvae", "masked"): 0.48,
    }
    for labels in (100, 1000):
        for dataset in DATASETS:
            for (model, loss), level in methods.items():
                for seed in range(10):
                    yield _run(generator, dataset, model, seed, level, supervision=loss, labels=labels)


def _run(generator: np.random.Generator, dataset: str, model: str, seed: int, level: float, **settings: object) -> Run:
    quality = np.clip(level + generator.normal(0, 0.1), 0.02, 0.98)
    noisy = iter(np.clip(quality + generator.normal(0, 0.06, 20), 0, 1).tolist())
    chance = iter(generator.uniform(0, 1, 20).tolist())
    scores = {metric: weight * next(noisy) + (1 - weight) * next(chance) for metric, weight in WEIGHTS.items()}
    scores |= {"elbo": -60 + 20 * (0.4 * next(noisy) - 0.6 * next(chance))}
    scores |= {"modularity": 0.7 + 0.3 * scores["modularity"], "beta_vae": 0.6 + 0.4 * scores["beta_vae"]}
    scores |= {"reconstruction": 40 + 9 * (0.3 * next(noisy) - next(chance)), "validation_risk": 4 - 2 * next(noisy)}
    scores |= {f"downstream_{learner}.efficiency": 0.5 + 0.4 * next(noisy) for learner in ("logistic", "boosting")}
    if "dvae" in model:
        scores |= {"gap": 30 - 25 * next(noisy), "gap.relative": 0.6 - next(noisy) - 0.5 * next(chance)}
        scores |= {"gap.confidence": next(noisy) + next(chance)}
    return Run(Path(f"{dataset}-{model}-{seed}"), "finished", {"model": model, "dataset": dataset} | settings, scores)


def draw(circles: Sequence[Run], run: Run, masked: Run, wanted: Sequence[str]) -> None:
    """Every picture of the gallery, or the wanted ones."""
    for name in FROM_RUNS:
        if not wanted or name in wanted:
            _write(f"{name}.png", rendered(figures[name].draw(circles), dpi=110))
    for name in MADE_UP:
        if not wanted or name in wanted:
            drawing = figures[name].draw(made_up_runs())
            drawing.suptitle("synthetic scores", color="#cc3311", fontsize=9)
            _write(f"{name}.png", rendered(drawing, dpi=110))
    for name in OF_A_RUN:
        if not wanted or f"run-{name}" in wanted:
            _write(f"run-{name}.png", rendered(run_figures[name].draw(run), dpi=DPI.get(name, 110)))
    if not wanted or "latent-categories" in wanted:
        _write("latent-categories.png", rendered(figures["traversals"].draw([masked]), dpi=110))
    if not wanted or "moving" in wanted:
        write_traversals(run, HERE / "traversals.gif", size=48)
        write_traversals(masked, HERE / "masked.gif", size=64)


def _write(name: str, content: bytes) -> None:
    """As a small file: drawings do with 256 colours, pictures with 64 values of each."""
    with written_whole(HERE / name) as draft, Image.open(BytesIO(content)) as picture:
        small = picture.convert("RGB")
        if name in DRAWINGS:
            small = small.quantize(256, dither=Image.Dither.NONE)
        elif name in PICTURES:
            small = small.point(lambda value: min(255, (value + 2) // 4 * 4) if value < 253 else 255)
        small.save(draft, optimize=True)
    print(f"{name}: {(HERE / name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    draw(list_runs(sys.argv[1]), list_runs(sys.argv[2])[0], list_runs(sys.argv[3])[0], sys.argv[4:])
