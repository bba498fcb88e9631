import csv
import io
import json
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from lddr.cli import main
from lddr.config import configure
from lddr.errors import UserError
from lddr.runs.index import find_run, list_runs
from tests.cli.words import called
from tests.run_folders import completed

list_ = partial(called, "runs ls")
TRAINING = {"elbo": -123.456, "elbo_noiseless": -120.0}


def made(root: Path, metrics: dict[str, float | None] | None = None, **settings) -> Path:
    config = configure(**{"model": "dvae", "dataset": "circles", "preset": "quick"} | settings)
    folder = root / config.run_name
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"settings": config.as_dict(), "dataset": {"checksum": "c"}}))
    if metrics is not None:
        entries = {name: {"score": score, "reason": "it has none"} for name, score in metrics.items()}
        (folder / "scores.json").write_text(json.dumps({"training": TRAINING, "metrics": entries}))
        completed(folder)
    return folder


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for seed, mig in enumerate([0.25, 0.5, 0.125]):
        made(tmp_path, {"mig": mig, "sap": None}, seed=seed)
    made(tmp_path / "study", {"mig": 0.0625, "dci": 1 / 3}, model="factor-dvae", gamma=20, seed=7)
    made(tmp_path, None, model="vae", seed=8)
    return tmp_path


def listed(capsys, root: Path, **options) -> list[dict[str, str]]:
    list_(root, csv=True, **options)
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


@pytest.mark.parametrize(
    ("where", "seeds"),
    [
        (["model=dvae"], "012"),
        (["model!=dvae"], "78"),
        (["mig>0.125"], "01"),
        (["mig >= 0.125", "mig<5e-1"], "02"),
        (["gamma=20"], "7"),
        (["gamma==20.0"], "7"),
        (["gamma=none"], "0128"),
        (["gamma!=20"], "0128"),
        (["supervision=none", "seed<=1"], "01"),
        (["state=training"], "8"),
        (["kernels=4,4,4,4", "dci>0.1"], "7"),
        (["latent=gaussian"], "8"),
        (["mig>2"], ""),
    ],
)
def test_conditions(where, seeds, runs, capsys):
    assert sorted(row["seed"] for row in listed(capsys, runs, where=where)) == list(seeds)


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("migg>0.3", r"unknown column 'migg'; did you mean 'mig'\?"),
        ("model>dvae", "model holds words, which are not ordered"),
        ("mig>high", "mig holds numbers; compare it with a number, not 'high'"),
        ("mig", "cannot read the condition 'mig'"),
        ("mig=", "cannot read the condition"),
        ("=3", "cannot read the condition"),
    ],
)
def test_mistaken_conditions_are_sentences(where, sentence, runs):
    with pytest.raises(UserError, match=sentence):
        list_(runs, where=[where])


@pytest.mark.parametrize("column", ["", "+", "-", "+-"])
def test_sorting_by_nothing_is_a_sentence(column, runs, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["runs", "ls", str(runs), "--sort", column])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith("lddr: unknown column ''; there are: ")


@pytest.mark.parametrize("options", [{"sort": "migg"}, {"columns": "name,migg"}])
def test_mistaken_columns_are_sentences(options, runs):
    with pytest.raises(UserError, match="did you mean 'mig'"):
        list_(runs, **options)
    with pytest.raises(UserError, match="at least 1"):
        list_(runs, limit=0)


@pytest.mark.parametrize(
    ("sort", "reverse", "seeds"),
    [("mig", False, "10278"), ("mig", True, "72018"), ("seed", False, "01278"), ("seed", True, "87210")],
)
def test_sorting_puts_large_scores_and_small_settings_first_and_what_is_missing_last(
    sort, reverse, seeds, runs, capsys
):
    assert "".join(row["seed"] for row in listed(capsys, runs, sort=sort, reverse=reverse)) == seeds


def test_words_sort_and_limits_limit(runs, capsys):
    models = [row["model"] for row in listed(capsys, runs, sort="model", limit=4, columns="model")]
    assert models == ["dvae", "dvae", "dvae", "factor-dvae"]


def test_json_has_every_digit_and_all_or_the_chosen_columns(runs, capsys):
    list_(runs, where=["dci>0"], json=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert row["dci"] == 1 / 3
    assert row["gamma"] == 20.0
    assert row["folder"].startswith(str(runs / "study"))
    list_(runs, where=["dci>0"], json=True, columns="dci,gamma")
    assert json.loads(capsys.readouterr().out) == [{"dci": 1 / 3, "gamma": 20.0}]


def test_the_elbo_of_an_older_run_is_shown_as_what_it_is(tmp_path, capsys):
    made(tmp_path, {"mig": 0.5}, seed=0)
    older = made(tmp_path, {"mig": 0.25}, seed=1)
    (older / "scores.json").write_text(json.dumps({"training": {"elbo": -50.0}, "metrics": {"mig": {"score": 0.25}}}))
    list_(tmp_path, sort="mig")
    head, newer_row, older_row = (line.split() for line in capsys.readouterr().out.splitlines())
    assert head == ["run", "dataset", "model", "seed", "mig", "elbo", "elbo_noiseless"]
    assert newer_row[-2:] == ["-123.5", "-120.0"]
    assert older_row[-2:] == ["0.250", "-50.0"]


def test_the_table_shows_what_differs_and_the_scores(runs, capsys):
    list_(runs, where=["model=dvae"], sort="mig")
    out, err = capsys.readouterr()
    head, *rows = (line.split() for line in out.splitlines())
    assert head == ["run", "dataset", "model", "seed", "mig", "elbo"]
    best = next(run for run in list_runs(runs) if run.value("mig") == 0.5)
    assert rows[0] == [best.name[-8:], "circles", "dvae", "1", "0.500", "-123.5"]
    assert [row[4] for row in rows] == ["0.500", "0.250", "0.125"]
    assert err == "lddr: 3 of 5 runs\n"


@pytest.mark.parametrize("width", [40, 60, 80])
def test_the_table_fits_and_shows_what_it_is_sorted_by(width, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    names = ["beta_vae", "factor_vae", "mig", "dci", "modularity", "sap", "irs"]
    for seed in range(3):
        made(tmp_path, dict.fromkeys(names, seed / 3), seed=seed)
    list_(tmp_path, sort="irs")
    out, err = capsys.readouterr()
    assert max(map(len, out.splitlines())) <= width
    assert len(out.splitlines()) == 4
    assert "irs" in out
    assert "no room for" in err
    assert "--columns" in err


def test_chosen_columns_are_all_there(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    folder = made(tmp_path / "[bold]", {"mig": 0.00012345, "dci": 12345.678})
    list_(tmp_path, columns="folder,mig,dci")
    out = "".join(capsys.readouterr().out.split())
    assert "0.0001234" in out or "0.0001235" in out
    assert "12346" in out
    assert "[bold]" in str(folder)
    assert "[bold]" in out


def test_broken_runs_are_named_with_the_reason(runs, capsys):
    folder = made(runs, {}, seed=99)
    (folder / "scores.json").write_text("{half")
    list_(runs)
    out, err = capsys.readouterr()
    assert "broken" in out
    assert f"{folder} is broken: scores.json is no JSON" in err


def test_nothing_there_is_said(tmp_path, runs, capsys):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"there are no runs in .*empty; train one first: lddr train"):
        list_(tmp_path / "empty", where=["mig>3"])
    list_(tmp_path / "empty", json=True)
    assert capsys.readouterr().out == "[]\n"
    list_(runs, where=["model=d-vae"])
    said = "lddr: none of the 5 runs has model=d-vae; did you mean 'dvae'? model is dvae, factor-dvae, vae\n"
    assert capsys.readouterr().err == said
    list_(runs, where=["model=vae", "seed<3"])
    assert "none of the 5 runs meets all of: model=vae, seed<3" in capsys.readouterr().err
    with pytest.raises(UserError, match="none of the 5 runs has model=d-vae; did you mean 'dvae'"):
        main(["--debug", "select", str(runs), "--where", "model=d-vae"])


def test_a_run_is_found_by_folder_name_fingerprint_or_a_part(runs):
    run = next(run for run in list_runs(runs) if run.value("seed") == 7)
    for text in (str(run.folder), run.name, run.name[-8:], "gamma=20", "factor"):
        assert find_run(text, runs).folder == run.folder
    with pytest.raises(UserError, match=r"'seed=' could be any of 5 runs \(.*, …\); give more"):
        find_run("seed=", runs)
    with pytest.raises(UserError, match=r"no run below .* has 'nothing' in its name"):
        find_run("nothing", runs)
    with pytest.raises(UserError, match=r"is no run: it has no config\.json"):
        find_run(str(runs / "study"), runs)


def test_an_exact_name_wins_over_longer_ones(tmp_path):
    for name in ("a", "ab"):
        made(tmp_path, {}).rename(tmp_path / name)
    assert find_run("a", tmp_path).name == "a"


@pytest.fixture
def show(monkeypatch):
    """A function that runs `lddr show` without drawing the page, which tests/report does."""
    page = Mock(return_value=(Path("page.html"), {}))
    monkeypatch.setattr("lddr.report.pages.write_card", page)
    return lambda *words: main(["show", *map(str, words)])


def test_show_prints_where_what_differs_and_the_scores(runs, show, capsys):
    show("seed=1_", runs)
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    assert ["state", "finished"] in lines
    assert ["seed", "1"] in lines
    assert ["steps", "2000"] in lines  # quick: not the paper's
    assert ["mig", "0.5"] in lines
    assert ["sap", "it", "has", "none"] in lines
    assert not any(line[:1] == ["decoder"] for line in lines)  # circles have the broadcast decoder in the paper too
    assert not any(line[:1] == ["batch_size"] for line in lines)
    assert out.endswith("open page.html\n")


def test_show_says_how_far_training_is(runs, show, capsys):
    folder = find_run("seed=8", runs).folder
    show(folder)
    assert "not finished: step 0 of 2000" in capsys.readouterr().out
    (folder / "log.jsonl").write_text('{"step": 100}\n{"step": 200}\n{"st')
    show(folder)
    assert "not finished: step 200 of 2000" in capsys.readouterr().out


def test_show_of_a_model_of_another_version_shows_everything(tmp_path, show, capsys):
    folder = made(tmp_path, {})
    text = (folder / "config.json").read_text().replace('"model": "dvae"', '"model": "future"')
    (folder / "config.json").write_text(text)
    show(folder)
    out = capsys.readouterr().out
    assert "future" in out
    assert "batch_size" in out


def test_diff_shows_what_differs_and_nothing_else(runs, capsys):
    def diff(*words):
        main(["runs", "diff", *words, str(runs)])
        return capsys.readouterr().out

    lines = [line.split() for line in diff("seed=0_", "seed=1_").splitlines()]
    assert lines[1:] == [["seed", "0", "1", "+1"], ["mig", "0.25", "0.5", "+0.25"]]
    assert "same settings and scores" in diff("seed=0_", "seed=0_")
    out = diff("seed=0_", "factor")
    assert "gamma" in out
    assert "dci" in out


def test_compare_looks_for_runs_in_the_folder_that_comes_last(runs, monkeypatch, capsys):
    compared = Mock(return_value="page.html")
    monkeypatch.setattr("lddr.report.pages.write_comparison", compared)
    main(["compare", "seed=0_", "factor", str(runs), "-o", "here"])
    assert [run.value("seed") for run in compared.call_args.args[0]] == [0, 7]
    assert compared.call_args.args[1] == Path("here")


def test_mig_is_shown_at_80_columns_however_many_settings_differ(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for seed in range(2):
        settings = {
            "learning_rate": 1e-4 * (seed + 1),
            "noise_start": 0.1 + seed,
            "noise_end": 1.0 + seed,
            "width": 8 + seed,
        }
        scores = {"beta_vae": 0.9, "mig": 0.25 + seed}
        made(
            tmp_path, scores, seed=seed, **settings, num_latents=5 + seed, num_categories=9 + seed, batch_size=8 + seed
        )
    list_(tmp_path)
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[-1] == "mig"
    assert {row.split()[-1] for row in rows} == {"0.250", "1.250"}
    assert max(map(len, [head, *rows])) <= 80


@pytest.mark.parametrize(
    ("sort", "expected"), [("mig", [2, 1, 0]), ("-mig", [2, 1, 0]), ("+mig", [0, 1, 2]), ("-seed", [2, 1, 0])]
)
def test_a_sign_says_which_way_to_sort(tmp_path, capsys, sort, expected):
    for seed in range(3):
        made(tmp_path, {"mig": seed / 3}, seed=seed)
    main(["runs", "ls", str(tmp_path), "--sort", sort, "--json"])
    assert [row["seed"] for row in json.loads(capsys.readouterr().out)] == expected


@pytest.mark.parametrize("flags", [["--where", "seed<2", "--where", "mig>0.2"], ["--where", "seed=1,7"]])
def test_folders_may_come_after_conditions(tmp_path, capsys, flags):
    for seed in range(3):
        made(tmp_path, {"mig": seed / 3}, seed=seed)
    main(["runs", "ls", *flags, str(tmp_path), "--columns", "seed,mig", "--json"])
    assert json.loads(capsys.readouterr().out) == [{"seed": 1, "mig": 1 / 3}]
