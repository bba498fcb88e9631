"""The command line as a whole: help, mistakes, names that changed, and how it ends."""

import os
import subprocess
import sys

import numpy as np
import pytest

import lddr as package
from lddr.cli import app, main
from lddr.cli.app import every_command

HEAVY = {"torch", "sklearn", "matplotlib", "ray", "starlette", "pandas", "scipy", "h5py", "numpy"}
COMMANDS = [name.split()[1:] for name, _ in every_command(app)]


def lddr(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "lddr", *words], capture_output=True, text=True, check=False)


def shown(capsys, *words: str) -> str:
    with pytest.raises(SystemExit) as end:
        main(list(words))
    assert end.value.code == 0
    return capsys.readouterr().out


def mistake(capsys, *words: str) -> str:
    """The sentence that a command answers a mistake with."""
    with pytest.raises(SystemExit) as end:
        main(list(words))
    out, err = capsys.readouterr()
    assert (end.value.code, out, err.count("\n")) == (2, "", 1)
    return err.removeprefix("lddr: ").rstrip("\n")


def test_help_answers_without_importing_anything_heavy():
    """Only `train` and `select`, which come last, need NumPy: they look at presets and selectors."""
    words = sorted([[], *COMMANDS], key=lambda each: each[:1] in (["train"], ["select"]))
    code = f"""
import sys
from lddr.cli import main
for words in {words}:
    try:
        main([*words, "--help"])
    except SystemExit as end:
        print("RESULT", words, end.code, sorted({HEAVY} & set(sys.modules)))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    results = [line.removeprefix("RESULT ") for line in run.stdout.splitlines() if line.startswith("RESULT")]
    allowed = [[] if each[:1] not in (["train"], ["select"]) else ["numpy"] for each in words]
    assert results == [f"{each} 0 {found}" for each, found in zip(words, allowed, strict=True)]


def test_the_help_lists_all_commands_with_a_line_each(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = shown(capsys, "--help").partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in lines] == list(app.order)
    assert set(app.order) == {words[0] for words in COMMANDS}


def default(option: str, text: str) -> str:
    """The default of an option in a help text."""
    return " ".join(text.split()).partition(f" {option} ")[2].partition("[default: ")[2].partition("]")[0]


def test_the_help_of_train_has_sections_and_resolves_defaults(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = shown(capsys, "train", "--help")
    sections = ["Basics", "Optimisation", "Networks", "Latent", "Objective", "Supervision", "Machine"]
    places = [text.index(f"\n{section}:\n") for section in sections]
    assert places == sorted(places)
    assert default("--steps", text) == "10000"
    assert default("--mean-bias / --no-mean-bias", text) == "on"
    assert "--gamma" not in text
    assert "--clip-of" not in text
    text = shown(capsys, "train", "--model", "factor-dvae", "--dataset", "rooms", "--preset", "paper", "--help")
    assert default("--steps", text) == "300000"
    assert default("--mean-bias / --no-mean-bias", text) == "off"
    assert default("--gamma", text) == "10"

    from lddr.config import all_settings

    everything = shown(capsys, "train", "--help-all")
    assert all(f"--{name.replace('_', '-')}" in everything for name in all_settings())


@pytest.mark.parametrize("words", [words for words in COMMANDS if words != ["train"]], ids=" ".join)
def test_every_option_is_explained_and_no_default_is_none(words, capsys):
    text = shown(capsys, *words, "--help")
    assert "default: None" not in text
    assert all(len(line.split()) > 1 for line in text.splitlines() if line.startswith("  --quiet"))


def test_import_lddr_is_light_and_its_names_are_there():
    code = f"import sys, lddr\nprint(sorted({HEAVY} & set(sys.modules)))\nprint(lddr.load_dataset('circles'))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    light, dataset = run.stdout.splitlines()
    assert light == "[]"
    assert dataset.startswith("<circles: 1600 images")


def test_every_public_name_exists():
    import lddr

    assert set(dir(lddr)) == {*lddr._HOMES, *lddr._MODULES, "__version__"}
    assert all(getattr(lddr, name) is not None for name in dir(lddr))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = lddr.nonsense


def test_a_users_mistake_is_one_sentence_and_with_debug_a_traceback():
    run = lddr("data", "show", "sprits")
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert run.stderr.startswith("lddr: unknown dataset 'sprits'; did you mean 'dsprites'?")
    with pytest.raises(package.UserError, match="unknown dataset 'sprits'"):
        main(["data", "show", "sprits", "--debug"])


@pytest.mark.parametrize(
    ("words", "plugin", "sentence"),
    [
        (["--help"], "no_such_plugin", "names 'no_such_plugin', but 'no_such_plugin' is not found; correct the name"),
        (["runs", "ls"], "half_a_plugin", "names 'half_a_plugin', which cannot be imported (NameError: name 'nothing'"),
    ],
)
def test_a_plugin_that_cannot_be_imported_is_a_sentence_for_every_command(words, plugin, sentence, tmp_path):
    (tmp_path / "half_a_plugin.py").write_text("nothing\n")
    environment = os.environ | {"LDDR_PLUGINS": plugin, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-m", "lddr", *words]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert run.stderr.startswith(f"lddr: $LDDR_PLUGINS {sentence}")


MISTAKES = {
    "trian": "lddr has no command 'trian'; did you mean 'train'? There are: demo, models",
    "data lst": "lddr data has no command 'lst'; did you mean 'list'? There are: list, show",
    "data": "lddr data needs a command. There are: list, show",
    "": "lddr needs a command. There are: demo, models",
    "data show": "lddr data show needs NAME; see lddr data show --help",
    "data show circles --sed 1": "lddr data show has no option --sed; did you mean --seed?",
    "train --lr 1": "lddr train has no option --lr; use --learning-rate",
    "train --epochs 1": "lddr train has no option --epochs; use --steps",
    "train --batch 1": "lddr train has no option --batch; use --batch-size",
    "train --latents 1": "lddr train has no option --latents; use --num-latents",
    "train --lambda 1": "lddr train has no option --lambda; use --covariance-weight",
    "train --zzzzzz 1": "lddr train has no option --zzzzzz; see lddr train --help",
    "train --steps": "--steps needs a value",
    "train --steps few": "steps must be a whole number, not 'few'",
    "train --seeds few": "--seeds: 'few' is not a valid integer",
    "train --mean-bias true": "flags take no value: leave true out, or write --no- before the flag's name",
    "train --dataset nowhere": "unknown dataset 'nowhere'; Known: ",
    "train one two": "lddr train: got unexpected extra argument (two); see lddr train --help",
    "sweep circles --only seed=1": "--only is now --where",
    "sweep circles --scale quick": "--scale is now --preset",
    "sweep circles --preset quik": "--preset: 'quik' is not one of 'paper', 'quick'",
    "compare a b --root runs": "--root is now a FOLDER after the other arguments",
    "runs show a": "lddr runs show is now lddr show",
    "evaluate": "there are no runs in runs; train one first: lddr train",
    "select": "there are no runs in runs; train one first: lddr train",
    "runs ls": "there are no runs in runs; train one first: lddr train",
    "evaluate --metrics mig dci": "separate names with commas: --metrics mig,dci",
    "score codes.npz --metrics MIG, sap": "separate names with commas: --metrics mig,sap",
    "score codes.npz --metrics migg": "unknown metric 'migg'; did you mean 'mig'?",
    "score one.npz two.npz": "lddr score takes one file, not 2; score them one after the other",
    "score transposed.npz": "transposed.npz: codes of shape (2, 9) have a row per latent, and there are 9 samples",
}


@pytest.mark.parametrize(("words", "sentence"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_is_answered_with_one_sentence(words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("codes.npz", codes=np.zeros((9, 2)), factors=np.zeros((9, 1), int))
    np.savez("transposed.npz", codes=np.zeros((2, 9)), factors=np.zeros((9, 1), int))
    assert mistake(capsys, *words.split()).startswith(sentence)


def test_missing_pictures_are_named_with_their_whole_path(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    said = mistake(capsys, "train", "./pictures")
    assert said.startswith(f"{tmp_path}/pictures does not exist; give a folder of images, an .npz or .npy file, or a")
    assert mistake(capsys, "train", "pictures").endswith(
        "or give the path of a folder, .npz or .npy file of your own images"
    )


@pytest.mark.parametrize("names", ["MIG,SAP", "mig,sap"])
def test_metrics_are_known_in_any_case_and_printed_once(names, tmp_path, capsys):
    factors = np.random.default_rng(0).integers(3, size=(200, 2))
    np.savez(tmp_path / "codes.npz", codes=factors.astype(float), factors=factors)
    main(["score", str(tmp_path / "codes.npz"), "--metrics", names, "--jobs", "1"])
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()[1:3]] == ["mig", "sap"]
    assert "mig" not in err


def test_underscores_in_options_are_hyphens(monkeypatch, capsys):
    monkeypatch.setattr("lddr.runs.run.run", lambda config, *_: config.training.batch_size)
    main(["train", "--batch_size", "7", "--dataset", "circles", "--device", "cpu"])
    assert capsys.readouterr().out == "7\n"


def test_ctrl_c_is_no_traceback(monkeypatch, capsys):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lddr.console.show", interrupted)
    with pytest.raises(SystemExit) as end:
        main(["data", "list"])
    assert end.value.code == 130
    assert capsys.readouterr().err == "lddr: stopped\n"


def test_the_version_is_printed(capsys):
    main(["--version"])
    assert capsys.readouterr().out == f"lddr {package.__version__}\n"


def test_a_reader_who_stops_reading_is_no_error():
    command = f"{sys.executable} -m lddr train --help | head -1; exit ${{PIPESTATUS[0]}}"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert run.stdout.startswith("Usage: lddr train")
    assert "Traceback" not in run.stderr


def test_the_shell_completes_commands_and_options():
    asked = {"_LDDR_COMPLETE": "bash_complete", "COMP_WORDS": "lddr train --learning-r", "COMP_CWORD": "2"}
    run = subprocess.run([sys.executable, "-m", "lddr"], env=os.environ | asked, capture_output=True, text=True)
    assert run.stdout == "plain,--learning-rate\n"
