"""The tutorial's code, run from top to bottom with few steps, and its form as a notebook."""

import json
import re
from pathlib import Path

NOTEBOOK = json.loads((Path(__file__).parents[2] / "docs" / "tutorial.ipynb").read_text(encoding="utf-8"))
CODE = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
SMALL = {"STEPS = 2_000": "STEPS = 5", "SEEDS = 3": "SEEDS = 2"}


def test_it_is_a_notebook_with_what_it_prints():
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    names = [cell["id"] for cell in NOTEBOOK["cells"]]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[\w-]{1,64}", name) for name in names)
    for cell in NOTEBOOK["cells"]:
        assert cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert cell["execution_count"] is None
            assert bool(cell["outputs"]) == ("print(" in "".join(cell["source"]))  # anew by tools/tutorial.py
            assert all((out["output_type"], out["name"]) == ("stream", "stdout") for out in cell["outputs"])
        else:
            assert cell["cell_type"] == "markdown"
            assert {"outputs", "execution_count"}.isdisjoint(cell)


def test_it_installs_lddr_only_where_it_is_missing():
    assert 'if importlib.util.find_spec("lddr") is None:' in CODE[0]
    assert "git+{REPOSITORY}" in CODE[0]


def test_it_runs_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")
    names = {}
    assert all(any(usual in code for code in CODE) for usual in SMALL)
    for number, code in enumerate(CODE):
        for usual, small in SMALL.items():
            code = code.replace(usual, small)
        exec(compile(code, f"tutorial, cell {number + 1}", "exec"), names)
    plt.close("all")
    printed = capsys.readouterr().out
    assert printed.count("MIG 0.") == 2
    assert "is chosen" in printed
    assert names["found"]["mig"]["score"] > 0.75  # a perfect code, whatever was trained
    assert len(list((tmp_path / "runs").glob("circles_dvae_seed=*"))) == 2
