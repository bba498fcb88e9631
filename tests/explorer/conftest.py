"""Small trained runs, the explorer on a free port, and pages that must log nothing and load nothing from others."""

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
SMALL = {"preset": "quick", "resolution": 16, "width": 4, "steps": 40, "learning_rate": 3e-3}
PIXELS = """canvas => {
  const {width, height} = canvas;
  const copy = new OffscreenCanvas(width, height).getContext("2d", {willReadFrequently: true});
  copy.drawImage(canvas, 0, 0);
  return Array.from(copy.getImageData(0, 0, width, height).data);
}"""


@pytest.fixture(scope="session")
def trained_runs(tmp_path_factory):
    """A D-VAE, a VAE and a masked D-VAE on circles, trained for a moment; tests must not change them."""
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
    """Write what `lddr evaluate` would, without importing all metrics."""
    model, dataset = Trained.load(folder), load_dataset("circles", 16)
    everything = np.arange(len(dataset))
    found = {"mig": mig(model.represent(dataset.images(everything)), dataset.space.factors_of(everything)).as_dict()}
    if model.is_discrete:
        found["gap"] = gap(model, dataset, 0, 2, 8).as_dict()
    scores = json.loads((folder / "scores.json").read_text())
    (folder / "scores.json").write_text(json.dumps(scores | {"metrics": found}))


@pytest.fixture(scope="session")
def root(trained_runs, tmp_path_factory):
    """The runs, and one that is still training, and a secret outside; tests must not change them."""
    place = tmp_path_factory.mktemp("explorer")
    for name, folder in trained_runs.items():
        shutil.copytree(folder, place / "runs" / name)
    training = place / "runs" / "unfinished"
    training.mkdir()
    shutil.copy(trained_runs["vae"] / "config.json", training)
    (training / "log.jsonl").write_text('{"step": 20, "loss": 9.5, "kl": 1.5}\n{"step": 30, "lo')
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
    """A page of the explorer with everything it logged and requested."""

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
        self.page.goto("about:blank")  # a mere change of the hash would leave the old view in place for a moment
        self.page.goto(f"{self.address}/#/{place}")
        self.ready()

    def ready(self):
        self.page.wait_for_selector(".view[data-ready]")

    def pixels(self, canvas):
        """The pixels of a canvas, read from a copy, because browsers warn about a canvas that is read often."""
        return canvas.evaluate(f"canvas => ({PIXELS})(canvas)")

    def leave(self, address):
        """Forget the page, and visit another explorer from now on."""
        self.page.goto("about:blank")
        self.address, self.said, self.asked = address, [], []

    def check(self):
        """The page logged nothing but the browser's own note about a refusal, and asked no other server."""
        allowed = (f"{self.address}/", "data:", "blob:", "about:")
        assert [place for place in self.asked if not place.startswith(allowed)] == []
        assert [text for text in self.said if "the server responded with a status of 4" not in text] == []


@contextmanager
def visiting(browser, address, **options):
    """A page of its own on the explorer: it must not log anything nor send requests to others."""
    site = Site(browser, address, **options)
    yield site
    site.check()
    site.context.close()


@pytest.fixture(scope="module")
def shared_site(chromium):
    with visiting(chromium, None) as opened:
        yield opened


@pytest.fixture
def site(shared_site, address):
    shared_site.leave(address)
    yield shared_site
    shared_site.check()


@pytest.fixture
def own_site(shared_site, own_address):
    shared_site.leave(own_address)
    yield shared_site
    shared_site.check()
    shared_site.leave(None)  # before its server stops


@pytest.fixture(scope="session")
def many_values():
    """config.json and scores.json of a run that was never trained, for a seed."""

    def values(seed):
        settings = configure("dvae" if seed % 2 else "vae", "circles", "quick", seed=seed).as_dict()
        metrics = {"mig": {"score": seed / 1000, "settings": {}}, "gap": {"score": 1 / (1 + seed), "settings": {}}}
        return json.dumps({"settings": settings}), json.dumps({"training": {"elbo": -1.0}, "metrics": metrics})

    return values
