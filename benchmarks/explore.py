"""From moving a slider to the new picture, and opening a folder of 1 000 runs, in the browser."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from lddr.errors import UserError
from lddr.runs.folder import RunFolder
from lddr.timing import show

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MOVES, OPENINGS, RUNS = 40, 10, 1000
LIMITS = {"slider": 100.0, "open": 3000.0}  # milliseconds
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]  # it sends requests only to the explorer
# from the event to the end of the frame that shows the new picture; then a frame of rest
MOVE = """async place => {
  const slider = document.querySelectorAll(".latent input[type=range]")[0];
  const picture = document.querySelector("canvas[aria-label='What the model draws']");
  const drawn = new Promise(resolve => {
    const watch = new MutationObserver(() => (watch.disconnect(), resolve()));
    watch.observe(picture, {attributes: true, attributeFilter: ["data-drawn"]});
  });
  slider.value = place;
  const start = performance.now();
  slider.dispatchEvent(new Event("input", {bubbles: true}));
  await drawn;
  await new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)));
  const end = performance.now();
  await new Promise(requestAnimationFrame);
  return end - start;
}"""
OPENED = """async () => {
  await new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)));
  return performance.now();
}"""


def run_bench(out: Path | None) -> None:
    """Measure, print the table and write it."""
    with TemporaryDirectory() as folder, browser() as chromium:
        page = chromium.new_page()
        model = write_model(Path(folder) / "model")
        write_runs(Path(folder) / "many", RUNS)
        with explorer(Path(folder) / "model") as address:
            moves = slider_times(page, address, MOVES)
        with explorer(Path(folder) / "many") as address:
            first, *later = [opening_time(page, address) for _ in range(1 + OPENINGS)]
    rows = [
        _row(f"slider to picture, {model}", moves, LIMITS["slider"]),
        _row(f"{RUNS} runs, for the first time", [first], LIMITS["open"]),
        _row(f"{RUNS} runs, again", later, LIMITS["open"]),
    ]
    show(rows, "the explorer in Chromium", out)


def _row(what: str, times: list[float], limit: float) -> dict[str, Any]:
    middle, high = np.percentile(times, [50, 95])
    return {"what": what, "median, ms": float(middle), "95 %, ms": float(high), "limit, ms": limit}


def slider_times(page: "Page", address: str, moves: int) -> list[float]:
    """Milliseconds of every move, over all categories and back; the first is to warm up."""
    token = _runs(page, address)[0]["token"]
    page.goto(f"{address}/#/model/{token}")
    page.wait_for_selector(".view[data-ready]")
    places = [(7 * number) % 64 for number in range(moves + 1)]
    return [page.evaluate(MOVE, place) for place in places][1:]


def opening_time(page: "Page", address: str) -> float:
    """Milliseconds from going to the page until the table and the points are on the screen."""
    page.goto("about:blank")
    page.goto(f"{address}/#/runs", wait_until="commit")
    page.wait_for_selector(".view[data-ready] table.runs tbody tr")
    return page.evaluate(OPENED)


def _runs(page: "Page", address: str) -> list[dict[str, Any]]:
    return page.request.get(f"{address}/api/runs").json()["runs"]


@contextmanager
def browser() -> Iterator["Browser"]:
    """A headless Chromium: the system's, else Playwright's own."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        cure = "pip install playwright && playwright install chromium"
        raise UserError(f"this needs a browser; get it with: {cure}") from error
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield chromium
        chromium.close()


@contextmanager
def explorer(root: Path) -> Iterator[str]:
    """The address of an explorer in a process of its own, as somebody would start it."""
    command = [sys.executable, "-m", "lddr", "explore", str(root), "--port", "0", "--no-open-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[4]
        finally:
            process.terminate()


def write_model(root: Path) -> str:
    """A D-VAE of the paper's size, trained for a step; gives what it is."""
    from lddr.config import configure
    from lddr.runs.run import Machine, run

    run(configure("dvae", "dsprites", steps=1), root, Machine("cpu", quiet=True))
    return "D-VAE 64x64"


def write_runs(root: Path, count: int) -> None:
    """Finished runs without models, their scores drawn at random."""
    from lddr.config import configure

    generator = np.random.default_rng(0)
    for seed in range(count):
        config = configure(("vae", "dvae", "tc-dvae", "factor-dvae")[seed % 4], "dsprites", seed=seed)
        scores = dict(zip(("mig", "dci", "sap", "gap"), generator.random(4).tolist(), strict=True))
        metrics = {name: {"score": score, "settings": {}} for name, score in scores.items()}
        content = {
            "training": {"elbo": -55.0, "elbo_noiseless": -50.0, "reconstruction": 30.0, "kl": 20.0},
            "metrics": metrics,
        }
        _write(RunFolder(root / config.run_name), {"settings": config.as_dict()}, content)


def _write(run: RunFolder, config: dict[str, Any], scores: dict[str, Any]) -> None:
    """Not flushed to the disk one by one, as real runs are: these live for a minute."""
    run.path.mkdir(parents=True)
    run.config_file.write_text(json.dumps(config))
    run.scores_file.write_text(json.dumps(scores))
    for file in (run.log_file, run.model_file):
        file.touch()
