import joblib
import psutil
import pytest
import torch

from lddr.cli import main
from lddr.errors import UserError
from lddr.hardware import Machine
from lddr.runs.folder import RunFolder
from lddr.runs.run import limited_threads


@pytest.mark.parametrize(("cores", "torchs", "taken"), [(2, 4, 2), (4, 2, 2), (1, 4, 1)])
def test_the_load_of_the_machine_does_not_change_the_number_of_threads(monkeypatch, tmp_path, cores, torchs, taken):
    before = torch.get_num_threads()
    monkeypatch.setattr(joblib, "cpu_count", lambda: cores)
    monkeypatch.setattr(psutil, "cpu_percent", lambda *given, **named: [100.0] * 64)
    torch.set_num_threads(torchs)
    try:
        with limited_threads(Machine(), RunFolder(tmp_path)):
            assert torch.get_num_threads() == taken
        assert torch.get_num_threads() == torchs
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [0, -3, 10**6, 1.5, "2"])
def test_a_number_of_threads_that_cannot_be_is_a_sentence(threads):
    with pytest.raises(UserError, match=r"^threads must be a whole number from 1 to 1024, not "):
        Machine(threads=threads)


@pytest.mark.parametrize("words", [["train"], ["bench", "train"], ["bench", "models"]])
@pytest.mark.parametrize("threads", ["0", "-3"])
def test_the_command_line_refuses_it_too(words, threads, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main([*words, "--threads", threads])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == f"lddr: threads must be a whole number from 1 to 1024, not {threads}\n"
    assert list(tmp_path.iterdir()) == []
