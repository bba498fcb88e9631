import json

import pytest

from lddr.explorer.scores import MOST_POINTS, all_scores, curves_of
from lddr.runs.index import Run, read_run
from tests.run_folders import completed
from tests.runs.test_information import MIG, write


def test_the_report_tells_scores_reasons_and_details(tmp_path):
    folder = completed(write(tmp_path, MIG))
    scores = json.loads((folder / "scores.json").read_text())
    scores["metrics"] |= {"gap": {"score": None, "reason": "no categories"}, "dci": {"score": 0.5, "completeness": 0.6}}
    (folder / "scores.json").write_text(json.dumps(scores))
    told = all_scores(read_run(folder))
    rows = {row["name"]: row for row in told["metrics"]}
    assert rows["mig"]["score"] == 0.4
    assert rows["gap"]["reason"] == "no categories"
    assert rows["dci"]["details"] == {"completeness": 0.6}
    assert told["training"] == {"elbo_noiseless": -3.0}
    assert told["information"]["factors"] == ["shape", "x"]


@pytest.mark.parametrize("lines", [0, 1, MOST_POINTS, 3 * MOST_POINTS + 7])
def test_long_curves_are_thinned_and_keep_their_end(tmp_path, lines):
    records = [{"step": 100 * (number + 1), "loss": float(number)} for number in range(lines)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    told = curves_of(Run(tmp_path, "training", {"steps": 500_000}, {}))
    assert told["step"] == 100 * lines
    if lines:
        assert told["terms"]["loss"][0] == (100, 0.0)
        assert told["terms"]["loss"][-1] == (100 * lines, lines - 1.0)
        assert len(told["terms"]["loss"]) <= MOST_POINTS + 1


def test_a_term_that_is_no_number_is_left_out(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"step": 1, "loss": NaN, "kl": "x"}\n{"step": 2, "loss": 1}\n')
    assert curves_of(Run(tmp_path, "training", {}, {}))["terms"] == {"loss": [(2, 1)], "kl": []}
