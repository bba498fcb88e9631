import json
import sys

import pytest

from benchmarks import peers
from lddr.errors import UserError
from lddr.timing import in_turns
from tests.docs.blocks import ROOT

RESULTS = ROOT / "benchmarks" / "peers.json"


class Counting:
    """In place of a process: its loss falls by 1 in each step, and a step takes as many seconds as told."""

    def __init__(self, function, *arguments, python=None):
        self.processor_seconds, self.loss, self.seconds = 0.0, 100, 2.0 if python else 1.0

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        pass

    def run(self, times):
        self.processor_seconds += times * self.seconds
        return times

    def value(self):
        self.run(1)
        self.loss -= 1
        return self.loss


def test_sides_are_compared_turn_by_turn():
    clock = iter(range(100))
    assert in_turns({"one": lambda: 1, "two": lambda: 2}, 3, lambda: next(clock)) == {"one": 3 * [1], "two": 3 * [0.5]}


def test_the_table_has_ours_and_the_peers_that_are_found(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(peers, "Worker", Counting)
    monkeypatch.setitem(peers.PEERS, "jax", peers.Side("JAX", "dvae", ("numpy",)))
    peers.run_bench([f"jax={sys.executable}", f"pythae={tmp_path / 'python'}"], tmp_path / "peers.json")
    rows = json.loads((tmp_path / "peers.json").read_text())
    assert [(row["code"], row["times lddr's"], row["ms"]) for row in rows] == [
        ("lddr", 1, 1000), ("lddr", 1, 1000), ("JAX", 2, 2000),
    ]  # fmt: skip
    assert rows[2]["versions"].startswith("numpy ")
    assert rows[2]["hours for the paper's 300,000 steps"] == pytest.approx(300_000 * 2 / 3600)
    assert [row["loss in 50 steps"] for row in rows] == ["–", "–", "97.0 → 52.0"]
    printed = capsys.readouterr().out
    assert "pythae was not found" in printed
    assert "disent was not found" in printed
    assert "jax was not found" not in printed


@pytest.mark.parametrize("given", ["haiku=python", "jax", "jax="])
def test_an_unknown_peer_is_refused(given):
    with pytest.raises(UserError, match="NAME=PATH"):
        peers.run_bench([given], None)


def test_a_side_that_does_not_train_is_an_error():
    worker = Counting("")
    worker.value = lambda: 1.0
    with pytest.raises(RuntimeError, match="does not train"):
        peers.checked(worker)


@pytest.mark.parametrize("model", ["dvae", "vae"])
def test_our_side_takes_steps(model):
    step = peers.prepared(model)
    assert 0 < step() < 10_000


@pytest.mark.skipif(not RESULTS.exists(), reason="not measured yet")
def test_the_page_says_what_was_measured():
    page = (ROOT / "benchmarks" / "README.md").read_text()
    for row in json.loads(RESULTS.read_text()):
        times, hours = row["times lddr's"], row["hours for the paper's 300,000 steps"]
        cells = row["code"], row["model"], row["versions"], f"{row['ms']:.0f}", f"{times:.2f}", f"{hours:.1f}"
        assert f"| {' | '.join(cells)} |" in page
