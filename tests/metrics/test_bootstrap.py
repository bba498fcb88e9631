import json
from dataclasses import replace

import numpy as np
import pytest

from lddr.cli import main
from lddr.data.factors import Factor, FactorGrid, FactorTable
from lddr.data.in_memory import ArrayDataset
from lddr.errors import UserError
from lddr.metrics import score_codes
from lddr.metrics.evaluate import Options, divide_rows, evaluate, resampled_scores, score_with_intervals
from lddr.metrics.metric import EncodedImages, Result, UndefinedError, metrics
from tests.metrics.toys import Toy

GENERATOR = np.random.default_rng(0)


def noisy_bits(rows, generator=GENERATOR):
    """Codes that show one bit with mistakes, and another better: their mutual information has almost no bias."""
    factors = generator.integers(2, size=(rows, 2))
    wrong = generator.uniform(size=(rows, 2)) < [0.2, 0.05]
    return (factors ^ wrong).astype(np.float32), factors


def limits(entries, name="mig", number="score"):
    return entries[name]["bootstrap"]["intervals"][number]


def scored(codes, factors, names=("mig",), resamples=40, **options):
    settings = {name: {"num_bins": 2} for name in names if "num_bins" in metrics[name].settings}
    return score_codes(codes, factors, names, settings=settings, bootstrap=resamples, jobs=1, quiet=True, **options)


def with_intervals(metric, samples, resamples, seed=0):
    options = Options(seed, bootstrap=resamples)
    return score_with_intervals(metric, samples, options, lambda share: None, print).bootstrap


def share_right(codes, factors):
    return Result(float(np.mean(codes == factors)))


def test_the_interval_covers_the_truth_in_about_nine_of_ten_small_tables(monkeypatch):
    monkeypatch.setattr("lddr.metrics.evaluate.fit_in_parallel", lambda fit, tasks, *_: [fit(*task) for task in tasks])
    accuracy, space, covered = replace(metrics["mig"], function=share_right), FactorGrid((Factor("row", 100),)), []
    truth = share_right(*noisy_bits(200_000)).score
    for seed in range(150):
        codes, factors = noisy_bits(100)
        table = EncodedImages(FactorTable(space.factors * 2, factors), np.arange(100), codes)
        samples = table.samples({"samples": np.arange(100)})
        found = with_intervals(accuracy, samples, 50, seed)
        low, high = found["intervals"]["score"]
        covered.append(low <= truth <= high)
    assert 0.82 <= np.mean(covered) <= 0.97  # 0.9 within three standard deviations


def test_its_width_falls_with_the_root_of_the_rows():
    widths = [np.ptp(limits(scored(*noisy_bits(rows), resamples=200))) for rows in (500, 4_500)]
    assert np.isclose(widths[0] / widths[1], 3, rtol=0.3)


@pytest.mark.parametrize("name", ["sap", "dci", "explicitness", "downstream_logistic"])
def test_no_row_is_in_both_parts_of_a_resample(name):
    parts, resamples = divide_rows(metrics[name], 90, seed=0), []

    def inputs(samples):
        resamples.append({part: sample.codes[:, 0].astype(int) for part, sample in samples.items()})
        return ()

    spy = replace(metrics[name], inputs=inputs, function=lambda: Result(0.0))
    table = Toy(FactorGrid((Factor("row", 90),)), lambda factors: factors)
    assert len(resampled_scores(spy, table.samples(parts), 0, range(20))) == 20
    for rows in resamples:
        assert not set(rows["train"]) & set(rows["test"])
        for part, found in rows.items():
            assert set(found) < set(parts[part])  # from its own part, and not all of them
            assert len(found) == len(parts[part])


def test_every_score_of_a_table_has_an_interval_around_it_and_the_seed_decides():
    codes, factors = noisy_bits(90)
    names = ["mig", "mig_sup", "modularity", "explicitness", "unsupervised"]
    entries = scored(codes, factors, [*names, "factor_vae", "gap"], resamples=20)
    for name in names:
        low, high = limits(entries, name)
        assert low <= entries[name]["score"] <= high
        assert high > low or entries[name]["score"] == 1, name
        assert entries[name]["settings"]["bootstrap"] == entries[name]["bootstrap"]["resamples"] == 20
        assert entries[name]["bootstrap"]["share"] == 0.9
    assert {"score", "area"} == set(entries["explicitness"]["bootstrap"]["intervals"])
    assert "bootstrap" not in entries["gap"]["settings"]
    assert "bootstrap" not in scored(codes, factors, resamples=0)["mig"]["settings"]
    assert scored(codes, factors, resamples=20) == scored(codes, factors, resamples=20)
    other = scored(codes, factors, resamples=20, seed=1)
    assert other["mig"]["score"] == entries["mig"]["score"]  # of all rows, whatever the seed
    assert limits(other) != limits(entries)


def test_resamples_on_two_cores_are_the_same():
    codes, factors = noisy_bits(100)
    alone, together = (
        score_codes(codes, factors, ["mig"], bootstrap=40, jobs=jobs, quiet=True)["mig"]["bootstrap"] for jobs in (1, 2)
    )
    assert alone == together


def test_what_is_drawn_from_a_dataset_has_intervals_too():
    space = FactorGrid((Factor("a", 4), Factor("b", 4)), hidden=(Factor("c", 9),))
    dataset = ArrayDataset(np.zeros((space.size, 2, 2), np.uint8), space)
    levels = space.factors_of(np.arange(space.size)) + GENERATOR.normal(0, 0.8, (space.size, 2))
    place = iter(np.split(levels, np.arange(512, space.size, 512)))
    quick = {"factor_vae": {"samples": 200, "train_votes": 60, "test_votes": 60, "images": 5}, "irs": {"samples": 200}}
    found = evaluate(
        dataset,
        lambda images: next(place)[: len(images)],
        list(quick),
        settings=quick,
        bootstrap=20,
        jobs=1,
        quiet=True,
    )
    for name in quick:
        low, high = limits(found, name)
        assert low <= found[name]["score"] <= high
        assert low < high


def test_the_command_shows_and_keeps_them(tmp_path, capsys):
    codes, factors = noisy_bits(100)
    np.savez(tmp_path / "codes.npz", codes=codes, factors=factors)
    words = ["--metrics", "mig,gap", "--bootstrap", "20", "--jobs", "1", "--out", str(tmp_path / "scores.json")]
    main(["score", str(tmp_path / "codes.npz"), *words])
    kept = json.loads((tmp_path / "scores.json").read_text())
    low, high = limits(kept)
    assert f"mig {kept['mig']['score']:.4f} [{low:.4f}, {high:.4f}]" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("resamples", [-1, 1, 19, 10**6])
def test_numbers_of_resamples_out_of_range_are_refused(resamples):
    with pytest.raises(UserError, match=r"bootstrap must be at (least 20|most 100000)"):
        scored(*noisy_bits(50), resamples=resamples)


def test_a_single_row_is_refused_and_few_rows_are_no_trouble():
    with pytest.raises(UserError, match="of unsupervised comes from resampled rows, and its 'samples' has 1 row; give"):
        score_codes(np.ones((1, 2)), [[0, 1]], ["unsupervised"], bootstrap=20, jobs=1, quiet=True)
    with pytest.raises(UserError, match="its 'test' has 1 row"):
        scored(np.arange(6.0).reshape(3, 2), [[0], [1], [0]], ["sap"], resamples=20)
    low, high = limits(scored(np.array([[0.0], [1.0], [0.0]]), [[0], [1], [0]], resamples=20))
    assert 0 <= low <= high <= 1


def test_resamples_without_a_score_are_left_out_and_counted():
    table = Toy(FactorGrid((Factor("a", 4),)), lambda factors: factors)
    samples, calls = table.samples({"samples": np.arange(4)}), iter(range(100))

    def every_third_is_undefined(codes, factors):
        number = next(calls)
        if number and number % 3 == 0:
            raise UndefinedError("no factor varies")
        return Result(number / 100)

    metric = replace(metrics["mig"], function=every_third_is_undefined)
    found = with_intervals(metric, samples, 45)
    assert found["resamples"] == 30
    assert len(found["intervals"]["score"]) == 2
    few = with_intervals(metric, samples, 20)
    assert few["intervals"] == {}
    assert "of the resamples have a score" in few["reason"]


def test_the_cost_is_said_beforehand_and_progress_comes_to_the_end(monkeypatch):
    now, said, shares = iter([0.0, 0.5]), [], []
    monkeypatch.setattr("lddr.metrics.evaluate.perf_counter", lambda: next(now))
    codes, _ = noisy_bits(50)
    table = Toy(FactorGrid((Factor("row", 50),)), lambda rows: codes[rows[..., 0].astype(int)])
    samples = table.samples({"samples": np.arange(50)})
    score_with_intervals(metrics["mig"], samples, Options(bootstrap=41), shares.append, said.append)
    assert said == ["mig: 41 resamples, ETA 0:00:20"]
    assert np.isclose(sum(shares), 40 / 42)  # MIG itself reports none
