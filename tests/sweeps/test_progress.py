import pytest

from lddr.config import configure
from lddr.runs.folder import TAIL
from lddr.sweeps import progress
from lddr.sweeps.progress import Job, SweepProgress


@pytest.fixture
def jobs(tmp_path):
    configs = [configure("vae", "circles", "quick", seed=seed, steps=1000) for seed in range(3)]
    return [Job(config, tmp_path / config.run_name) for config in configs]


def log(job, step):
    job.folder.mkdir(exist_ok=True)
    lines = [f'{{"step": {each}, "loss": 1.5, "kl": 0.5}}\n' for each in range(100, step + 1, 100)]
    (job.folder / "log.jsonl").write_text("".join(lines))


def test_the_log_and_the_weights_say_how_far_a_run_is(jobs):
    job = jobs[0]
    assert job.steps_done == 0
    log(job, 0)
    assert job.steps_done == 0
    log(job, 900)
    assert job.steps_done == 900
    with (job.folder / "log.jsonl").open("a") as file:
        file.write('{"step": 1000, "lo')  # half a line
    assert job.steps_done == 900
    (job.folder / "model.safetensors").touch()
    assert job.steps_done == 1000


def test_only_the_end_of_a_long_log_is_read(jobs):
    log(jobs[0], 100_000)
    assert (jobs[0].folder / "log.jsonl").stat().st_size > 5 * TAIL
    assert jobs[0].steps_done == 100_000


def test_plain_lines_elsewhere(jobs, capsys, monkeypatch):
    monkeypatch.setattr(progress, "LOOK_SECONDS", 0.0)
    seconds = iter(range(0, 10_000, 100))
    monkeypatch.setattr("lddr.console.perf_counter", seconds.__next__)
    monkeypatch.setattr(progress, "monotonic", seconds.__next__)
    log(jobs[0], 500)  # by an earlier sweep
    with SweepProgress("study", jobs, there=7) as shown:
        log(jobs[0], 600)
        shown.look(jobs[:2])
        shown.finished(jobs[0])
        shown.failed(jobs[1], "[odd] error")
        shown.say("once", once=True)
        shown.say("once", once=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "sweep study  15%  7/10 runs",
        "sweep study  18%  ETA 1:31:07  7/10 runs  1 running",  # 90 steps of work in 200 seconds
        f"lddr: {jobs[1].folder.name} failed: [odd] error",
        "lddr: once",
        "sweep study  50%  took 0:05:00  9/10 runs  1 failed",
    ]


def test_a_line_is_due_only_now_and_then_and_never_when_quiet(jobs, capsys):
    with SweepProgress("study", jobs, there=0) as shown:
        for _ in range(3):
            shown.look(jobs)
    assert len(capsys.readouterr().err.splitlines()) == 2  # the first look, and the end
    with SweepProgress("study", jobs, there=0, quiet=True) as shown:
        shown.look(jobs)
        shown.failed(jobs[0], "error")
    assert capsys.readouterr().err == ""


class Terminal:
    """Stands for a terminal of a few lines."""

    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def test_a_terminal_shows_a_bar_and_the_runs_that_move(jobs, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    for name, value in {"TERM": "xterm", "COLUMNS": "120", "LINES": "5"}.items():
        monkeypatch.setenv(name, value)
    seconds = iter(range(0, 10_000, 100))
    monkeypatch.setattr("lddr.console.perf_counter", seconds.__next__)
    monkeypatch.setattr(progress, "monotonic", seconds.__next__)
    with SweepProgress("study", jobs, there=0) as shown:
        shown.look(jobs)
        assert jobs[0].folder.name not in terminal.text
        for job, step in zip(jobs, (400, 1000, 700), strict=True):
            log(job, step)
        shown.look(jobs)
        assert "0/3 runs" in terminal.text
        assert "3 running" in terminal.text
        assert jobs[0].folder.name in terminal.text
        assert "400/1000" in terminal.text
        assert "evaluating" in terminal.text
        assert jobs[2].folder.name not in terminal.text  # five lines have no room for a third
        shown.finished(jobs[0])
        terminal.text = ""
        shown.look(jobs[1:])
        assert jobs[0].folder.name not in terminal.text
        assert jobs[2].folder.name in terminal.text
        assert "1/3 runs" in terminal.text
