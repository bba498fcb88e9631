"""Estimates, their intervals, and the rules by which cases become a verdict."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm, spearmanr

from lddr.runs.index import Run
from lddr_paper import judging
from lddr_paper.judging import (
    Case,
    Claim,
    Estimate,
    Runs,
    above,
    correlation_within,
    difference,
    judge,
    resampled,
    share,
)


def made_up(dataset, settings, scores, seeds=5):
    """Return runs with these scores, a thousandth apart."""
    return [
        Run(
            Path(f"{dataset}-{settings}-{seed}"),
            "finished",
            {"dataset": dataset, "supervision": None} | settings,
            {name: value + seed / 1000 for name, value in scores.items()},
        )
        for seed in range(seeds)
    ]


def test_a_verdict_needs_the_whole_interval_and_enough_runs():
    assert Estimate(1, 0.5, 2, 9).verdict() == "supported"
    assert Estimate(1, -0.5, 2, 9).verdict() == "inconclusive"
    assert Estimate(-1, -2, -0.5, 9).verdict() == "contradicted"
    assert Estimate(1, 0.5, 2, 4).verdict() == "too few runs"
    assert Estimate(30, 26, 40, 50).verdict(25) == "supported"
    assert Estimate(-0.1, -0.25, 0.05, 9).text(2) == "−0.10 (−0.25 to +0.05)"


@pytest.mark.long
def test_the_interval_of_a_difference_covers_it_about_as_often_as_it_says(monkeypatch):
    monkeypatch.setattr(judging, "RESAMPLES", 400)
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        new, old = generator.normal(1, 1, 40), generator.normal(0, 1, 40)
        found = resampled(above, new, old)
        covered += found.low <= 1 <= found.high
    assert 0.88 <= covered / 200 <= 1.0


def test_the_interval_of_a_share_is_wilsons():
    found = share(13, 50)
    z = norm.ppf(0.975)
    for limit in (found.low / 100, found.high / 100):  # where a test of that share is just not rejected
        assert abs(0.26 - limit) == pytest.approx(z * np.sqrt(limit * (1 - limit) / 50), rel=1e-5)
    assert share(0, 12).low == 0.0


def test_ranks_within_groups_are_those_of_each_group_alone():
    one = np.random.default_rng(0).normal(size=(12, 2))
    assert correlation_within([one]).value == pytest.approx(spearmanr(*one.T).statistic)
    low = np.stack([np.arange(6.0), np.arange(6.0) + 10], axis=1)  # rises, above the other group
    high = np.stack([np.arange(6.0) + 100, np.arange(6.0)], axis=1)
    assert spearmanr(*np.concatenate([low, high]).T).statistic < 0
    found = correlation_within([low, high])
    assert (found.value, found.high, found.runs) == (pytest.approx(1), pytest.approx(1), 12)


def compare(dataset, **settings):
    groups = tuple(Runs("s", dataset, (model,), settings) for model in ("vae", "dvae"))
    return Case((dataset,), groups, ("mig",), difference)


def test_cases_with_the_same_verdict_agree_and_others_are_mixed():
    runs = made_up("circles", {"model": "vae"}, {"mig": 0.1}) + made_up("circles", {"model": "dvae"}, {"mig": 0.2})
    runs += made_up("rooms", {"model": "vae"}, {"mig": 0.3}) + made_up("rooms", {"model": "dvae"}, {"mig": 0.1})

    def verdicts(**variants):
        found = judge(Claim("t", None, variants), lambda *studies: runs)
        return found and found.verdicts

    assert verdicts(only=(compare("circles"), compare("dsprites"))) == {"only": "supported"}  # no runs on dsprites
    assert verdicts(only=(compare("circles"), compare("rooms"))) == {"only": "mixed"}
    both = {"one": (compare("circles"),), "other": (compare("rooms"),)}
    assert verdicts(**both) == {"one": "supported", "other": "contradicted"}
    assert verdicts(only=(compare("dsprites"),)) is None


def test_a_difference_is_also_known_in_percent_of_the_first_median():
    runs = made_up("circles", {"model": "vae"}, {"mig": 0.1}) + made_up("circles", {"model": "dvae"}, {"mig": 0.2})
    found = judging.measure(compare("circles"), lambda *studies: runs)
    assert found.medians == pytest.approx([0.102, 0.202])
    assert found.percent == pytest.approx(100 * 0.1 / 0.102)


def test_the_best_rival_is_the_one_with_the_largest_median():
    groups = [
        made_up("circles", {"model": model}, {"mig": value}) for model, value in [("a", 0.1), ("b", 0.3), ("c", 0.2)]
    ]
    assert difference(("mig",), *groups).value == pytest.approx(-0.1)


def test_the_chosen_run_is_compared_with_the_median_of_its_model():
    runs = made_up("circles", {"model": "dvae"}, {"mig": 0.4, "gap": 1.0}, seeds=1)
    runs += made_up("circles", {"model": "factor-dvae"}, {"mig": 0.2, "gap": 2.0}, seeds=1)
    assert judging.chosen_over_median("factor-dvae", ("gap", "mig"), runs).value == pytest.approx(100)
    assert judging.chosen_over_median(None, ("gap", "mig"), runs).value == pytest.approx(100 / 3)
    assert judging.chosen_over_median(None, ("gap", "mig"), runs, in_percent=False).value == pytest.approx(0.1)
    runs[0].scores["explained"] = 0.0  # a collapsed run is never chosen
    assert judging.chosen_over_median("factor-dvae", ("gap", "mig"), runs).value == pytest.approx(0)
