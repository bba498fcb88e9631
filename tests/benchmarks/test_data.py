import json

import pytest

from benchmarks import data
from lddr.data.load import load_dataset
from lddr.timing import interleaved


def test_sides_take_turns_and_the_median_counts():
    calls = []
    seconds = interleaved({"one": lambda: calls.append("one") or 1, "two": lambda: calls.append("two") or 2}, repeats=3)
    assert calls == ["one", "two"] * 4  # once to warm up
    assert set(seconds) == {"one", "two"}
    assert all(value > 0 for value in seconds.values())


@pytest.mark.long
@pytest.mark.parametrize("name", ["circles", "color_dsprites", "noisy_dsprites"])
def test_both_ways_make_the_same_kind_of_batch(name, monkeypatch):
    monkeypatch.setattr(data, "PEER_BATCHES", 1)
    monkeypatch.setattr(data, "HELD", 64)
    dataset = load_dataset(name)
    assert data.our_batches(dataset, 2)() == 128
    assert data.usual_batches(dataset)() == 64


@pytest.mark.long
def test_memory_is_that_of_a_fresh_process():
    fresh = data.in_fresh_process("benchmarks.data:start_up", "circles")
    assert 10 < fresh["resident, MB"] < 200
    assert fresh["ready, s"] > 0


def test_the_table_is_printed_and_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(data, "measure", lambda name, batches: {"dataset": name, "times faster": 20.0})
    data.run_bench(1, tmp_path / "table.json")
    assert "rooms" in capsys.readouterr().out
    assert {row["dataset"] for row in json.loads((tmp_path / "table.json").read_text())} >= {"dsprites", "circles"}
