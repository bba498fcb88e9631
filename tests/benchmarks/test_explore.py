import json
from contextlib import nullcontext

import pytest

from benchmarks import explore


@pytest.mark.long
def test_everything_is_measured_in_the_browser(chromium, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(explore, "browser", lambda: nullcontext(chromium))  # there is one per process
    monkeypatch.setattr(explore, "MOVES", 3)
    monkeypatch.setattr(explore, "OPENINGS", 1)
    monkeypatch.setattr(explore, "RUNS", 5)
    explore.run_bench(tmp_path / "table.json")
    rows = json.loads((tmp_path / "table.json").read_text())
    assert [row["limit, ms"] for row in rows] == [100, 3000, 3000]
    assert all(0 < row["median, ms"] <= row["95 %, ms"] for row in rows)
    assert "slider to picture" in capsys.readouterr().out
