import json

import numpy as np
import pytest

from benchmarks import dci as bench


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(bench, "TRAIN", 60)
    monkeypatch.setattr(bench, "TEST", 40)
    monkeypatch.setattr(bench, "SIZES", (2, 3, 2, 2, 2))


def test_there_are_twenty_representations_or_more():
    assert len(bench.representations()) >= 20


@pytest.mark.long
@pytest.mark.parametrize("name", bench.SYNTHETIC)
def test_every_synthetic_one_is_finite_and_stays_the_same(name, small):
    (codes, factors), (again, _) = (bench.representations()[name]() for _ in range(2))
    assert codes.shape[0] == factors.shape[0] == 100
    assert factors.shape[1] == 5
    assert np.isfinite(codes).all()
    assert np.array_equal(codes, again)


def test_quantised_codes_have_64_values():
    values = bench.quantised(np.linspace(-2, 2, 1001))
    assert np.allclose(np.unique(values), np.linspace(-1, 1, 64))


@pytest.mark.long
def test_a_trained_one_goes_with_its_factors(small):
    codes, factors = bench.trained_codes("dvae", 3, 2)
    assert codes.shape == (100, 3)
    assert factors.shape == (100, 2)


@pytest.mark.long
def test_both_estimators_are_measured(small):
    row = bench.measure(*bench.representations()["noise 0.05"]())
    assert row["seconds, published"] > 0
    assert row["seconds, fast"] > 0
    assert abs(row["disentanglement, published"] - row["disentanglement, fast"]) < 0.1
    assert 0 < row["disentanglement, other seeds"] < 0.1


@pytest.mark.long
def test_the_published_sizes_are_measured_on_one_factor(small, monkeypatch):
    seen = {}
    monkeypatch.setattr(bench, "measure", lambda codes, factors, train: seen.update(locals()) or {})
    bench.full_size()
    assert seen["codes"].shape == (15_000, 10)
    assert seen["factors"].shape == (15_000, 1)
    assert seen["train"] == 10_000


def test_the_summary_by_hand():
    pairs = [(0.1, 0.2), (0.5, 0.5), (0.9, 0.7)]
    rows = [{"completeness, published": one, "completeness, fast": other} for one, other in pairs]
    rows = [row | {"completeness, other seeds": far} for row, far in zip(rows, (0.0, 0.1, 0.2), strict=True)]
    line = bench.summary(rows, "completeness")
    assert np.isclose(line["mean absolute difference"], 0.1)
    assert np.isclose(line["largest absolute difference"], 0.2)
    assert np.isclose(line["mean between seeds"], 0.1)
    assert np.isclose(line["largest between seeds"], 0.2)
    assert np.isclose(line["rank correlation"], 1)


@pytest.mark.long
def test_an_interrupted_study_goes_on_and_is_written(tmp_path, monkeypatch, capsys):
    measured = []

    def measure(codes, factors):
        if len(measured) == 1 and codes == "second":
            measured.append("stopped")
            raise KeyboardInterrupt
        measured.append(codes)
        return {
            f"{score}, {name}": len(measured) for score in bench.SCORES for name in ("published", "fast", "other seeds")
        }

    names = ("first", "second")
    monkeypatch.setattr(bench, "representations", lambda: {name: lambda name=name: (name, name) for name in names})
    monkeypatch.setattr(bench, "measure", measure)
    monkeypatch.setattr(bench, "full_size", lambda: {"times faster": 9.0})
    with pytest.raises(KeyboardInterrupt):
        bench.run_bench(tmp_path / "dci.json")
    bench.run_bench(tmp_path / "dci.json")
    assert measured == ["first", "stopped", "second"]
    written = json.loads((tmp_path / "dci.json").read_text())
    assert [row["representation"] for row in written["representations"]] == ["first", "second"]
    assert [row["score"] for row in written["summary"]] == list(bench.SCORES)
    assert [path.name for path in tmp_path.iterdir()] == ["dci.json"]
    assert "rank" in capsys.readouterr().out
