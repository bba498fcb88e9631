"""Small trained runs, the explorer on a free port of this machine, and pages that must stay silent and at home."""

import json
import shutil
import threading
from contextlib import contextmanager

import numpy as np
import pytest
import requests

from lddr.config import configure
from lddr.data.load import load_dataset
from lddr.explorer.guard import listening, url
from lddr.explorer.server import create_app, server
from lddr.metrics.elbo import gap
from lddr.metrics.mig import mig
from lddr.runs.run import Machine, run
from lddr.trained import Trained

QUIET = Machine(device="cpu", threads=1, quiet=True)
SMALL = {"preset": "quick", "resolution": 16, "width": 4, "steps": 100, "learning_rate": 3e-3}
PIXELS = """canvas => {
  const {width, height} = canvas;
  const copy = new OffscreenCanvas(width, height).getContext("2d", {willReadFrequently: true});
  copy.drawImage(canvas, 0, 0);
  return Array.from(copy.getImageData(0, 0, width, height).data);
}"""


@pytest.fixture(scope="session")
def trained_runs(tmp_path_factory):
    """A D-VAE, a VAE and a masked D-VAE on circles, trained for a moment; nobody may change them."""
    out = tmp_path_factory.mktemp("runs")
    configs = {
        "dvae": configure("dvae", "circles", num_categories=12, **SMALL),
        "vae": configure("vae", "circles", **SMALL),
        "masked": configure("dvae", "circles", supervision="masked", labels=20, num_latents=3, **SMALL),
    }
    folders = {name: run(config, out, QUIET) for name, config in configs.items()}
    for name in ("dvae", "vae"):
        write_scores(folders[name])
    return folders


def write_scores(folder):
    """What `lddr evaluate` would write, without waiting for all metrics to be imported."""
    model, dataset = Trained.load(folder), load_dataset("circles", 16)
    everything = np.arange(len(dataset))
    found = {"mig": mig(model.represent(dataset.images(everything)), dataset.space.factors_of(everything)).as_dict()}
    if model.is_discrete:
        found["gap"] = gap(model, dataset, 0, 2, 8).as_dict()
    scores = json.loads((folder / "scores.json").read_text())
    (folder / "scores.json").write_text(json.dumps(scores | {"metrics": found}))


@pytest.fixture(scope="session")
def root(trained_runs, tmp_path_factory):
    """The runs, and one that is still training, with a secret beside them; nobody may change them."""
    place = tmp_path_factory.mktemp("explorer")
    for name, folder in trained_runs.items():
        shutil.copytree(folder, place / "runs" / name)
    training = place / "runs" / "unfinished"
    training.mkdir()
    shutil.copy(trained_runs["vae"] / "config.json", training)
    (training / "log.jsonl").write_text('{"step": 40, "loss": 9.5, "kl": 1.5}\n{"step": 50, "lo')
    (place / "secret.txt").write_text("top secret")
    return place / "runs"


@pytest.fixture
def own_root(root, tmp_path):
    """A copy of them, to be changed."""
    return shutil.copytree(root, tmp_path / "runs")


@contextmanager
def serving(root, password=None, is_public=False):
    """The address of an explorer that runs in a thread."""
    with listening("127.0.0.1", 0) as place:
        running = server(create_app(root, password, is_public=is_public))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [place]})
        thread.start()
        try:
            yield url("127.0.0.1", place.getsockname()[1])
        finally:
            running.should_exit = True
            thread.join()


@pytest.fixture(scope="session")
def address(root):
    with serving(root) as place:
        yield place


@pytest.fixture
def own_address(own_root):
    with serving(own_root) as place:
        yield place


@pytest.fixture(scope="session")
def tokens(address):
    """The token of each run, by the name of its folder; a copy of the folder has the same."""
    return {row["name"]: row["token"] for row in requests.get(f"{address}/api/runs", timeout=60).json()["runs"]}


class Site:
    """A page of the explorer with everything it said and asked for."""

    def __init__(self, browser, address, **options):
        self.address = address
        self.context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}} | options)
        self.page = self.context.new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, place="runs"):
        """Go to a view and wait until it is drawn."""
        self.page.goto(f"{self.address}/#/{place}")
        self.ready()

    def ready(self):
        self.page.wait_for_selector(".view[data-ready]")

    def pixels(self, canvas):
        """What is drawn on a canvas, read from a copy: the browser has a word to say about reading a canvas often."""
        return canvas.evaluate(f"canvas => ({PIXELS})(canvas)")

    @property
    def strangers(self):
        """Requests that went to anyone else."""
        return [place for place in self.asked if not place.startswith((f"{self.address}/", "data:", "blob:"))]

    @property
    def errors(self):
        """What the page said, without the browser's own note about a refusal that a test has provoked."""
        return [text for text in self.said if "the server responded with a status of 4" not in text]


@contextmanager
def visiting(browser, address, **options):
    """An open browser on the explorer: it must not say anything nor ask anybody else."""
    site = Site(browser, address, **options)
    yield site
    assert site.strangers == []
    assert site.errors == []
    site.context.close()


@pytest.fixture
def site(chromium, address):
    with visiting(chromium, address) as opened:
        yield opened


@pytest.fixture
def own_site(chromium, own_address):
    with visiting(chromium, own_address) as opened:
        yield opened


@pytest.fixture(scope="session")
def many_values():
    """config.json and scores.json of a run that was never trained, for a seed."""

    def values(seed):
        settings = configure("dvae" if seed % 2 else "vae", "circles", "quick", seed=seed).as_dict()
        metrics = {"mig": {"score": seed / 1000, "settings": {}}, "gap": {"score": 1 / (1 + seed), "settings": {}}}
        return json.dumps({"settings": settings}), json.dumps({"training": {"elbo": -1.0}, "metrics": metrics})

    return values
