import os
import subprocess
import sys

import pytest

import lddr as package
from lddr.cli import main

HEAVY = {"torch", "sklearn", "matplotlib", "ray", "starlette", "pandas", "scipy", "h5py", "numpy"}


def lddr(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "lddr", *words], capture_output=True, text=True, check=False)


COMMANDS = ["demo", "models", "train", "metrics", "evaluate", "score", "sweep", "runs", "select", "report", "show"]
COMMANDS += ["compare", "explore", "data", "bench"]


@pytest.mark.parametrize(
    "words", [["--help"], *([command, "--help"] for command in COMMANDS), ["runs", "ls", "--help"]]
)
def test_help_answers_without_importing_anything_heavy(words):
    code = (
        "import sys\nfrom lddr.cli import main\n"
        f"try: main({words})\nexcept SystemExit as end: code = end.code\n"
        f"print(code, sorted({HEAVY} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    allowed = ["0 []", "0 ['numpy']"] if words[0] == "select" else ["0 []"]  # the selectors are listed in the help
    assert run.stdout.splitlines()[-1] in allowed


def test_all_modules_of_the_command_line_are_in_the_tree(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert all(f"• {command} " in shown for command in COMMANDS)


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


def test_a_users_mistake_is_one_sentence_and_exit_code_2():
    run = lddr("data", "show", "sprits")
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.startswith("lddr: unknown dataset 'sprits'; did you mean 'dsprites'?")
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["--help"], ["select", "--help"], ["runs", "ls"]])
@pytest.mark.parametrize(
    ("plugin", "sentence"),
    [
        ("no_such_plugin", "names 'no_such_plugin', but 'no_such_plugin' is not found; correct the name, or put it"),
        (
            "half_a_plugin",
            r"names 'half_a_plugin', which cannot be imported (NameError: name 'nothing' is not defined); ",
        ),
    ],
)
def test_a_plugin_that_cannot_be_imported_is_a_sentence_for_every_command(words, plugin, sentence, tmp_path):
    (tmp_path / "half_a_plugin.py").write_text("nothing\n")
    environment = os.environ | {"LDDR_PLUGINS": plugin, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-m", "lddr", *words]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert run.stderr.startswith(f"lddr: $LDDR_PLUGINS {sentence}")


def test_debug_shows_the_traceback():
    run = lddr("data", "show", "sprits", "--debug")
    assert "Traceback" in run.stderr
    assert "UserError" in run.stderr


@pytest.mark.parametrize("words", [["nonsense"], ["data", "show"], ["data", "show", "circles", "--sed", "1"], []])
def test_a_misspelt_command_is_explained_and_exits_with_2(words, capsys):
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    assert capsys.readouterr().err


def test_ctrl_c_is_no_traceback(monkeypatch, capsys):
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lddr.cli.data._kinds", interrupted)
    with pytest.raises(SystemExit) as end:
        main(["data", "list"])
    assert end.value.code == 130
    assert capsys.readouterr().err == "lddr: stopped\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["trian"], "lddr has no command 'trian'; did you mean 'train'?"),
        (["data", "lst"], "lddr data has no command 'lst'; did you mean 'list'?"),
    ],
)
def test_a_mistyped_command_gets_a_suggestion(words, sentence, capsys):
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    assert sentence in capsys.readouterr().err


def test_the_version_is_told(capsys):
    main(["--version"])
    assert capsys.readouterr().out == f"lddr {package.__version__}\n"


def test_a_reader_who_stops_reading_is_no_error():
    command = f"{sys.executable} -m lddr train --help | head -1; exit ${{PIPESTATUS[0]}}"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert run.stdout.startswith("usage: lddr train")
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    "words", [["train"], ["evaluate"], ["score"], ["sweep"], ["select"], ["runs", "ls"], ["data", "show"]]
)
def test_no_help_says_that_a_default_is_none(words, capsys):
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    assert "default: None" not in capsys.readouterr().out
