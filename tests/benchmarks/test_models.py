from lddr.bench import measure_models


def test_models_are_timed_beside_the_first():
    rows = measure_models(["dvae", "categorical+nhp"], "circles", "quick", repeats=1, resolution=16, width=4)
    assert [row["model"] for row in rows] == ["dvae", "categorical+nhp"]
    assert rows[0]["times dvae"] == 1
    assert rows[1]["times dvae"] > 1
    assert all(row["ms"] > 0 for row in rows)
