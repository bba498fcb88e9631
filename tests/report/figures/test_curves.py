from pathlib import Path

from matplotlib.colors import to_hex

from lddr.report.exhibits import figures
from lddr.report.style import colour
from tests.report.grouped import grouped, invented


def test_all_runs_of_a_dataset_share_a_panel(logged_run):
    runs = [logged_run, *(invented("vae", dataset, folder=logged_run.folder) for dataset in ("circles", "rooms"))]
    figure = figures["curves"].make(grouped([*runs, invented(folder=Path("without a log"))])).figure
    assert [axes.get_title() for axes in figure.axes] == ["Circles", "rooms"]
    assert [to_hex(line.get_color()) for line in figure.axes[0].lines] == [colour("dvae"), colour("vae")]
    assert figure.axes[0].lines[0].get_ydata().tolist() == [-9, -7, -6]
    assert [text.get_text() for text in figure.axes[0].get_legend().texts] == ["D-VAE", "VAE"]


def test_why_the_elbo_of_a_discrete_model_falls_is_said_where_there_is_one(logged_run, make_run):
    gaussian = make_run("vae", "circles", steps=301)
    gaussian.files.log_file.write_text(logged_run.files.log_file.read_text())
    assert "training ELBO falls" in figures["curves"].make(grouped([logged_run, gaussian])).caption
    assert "training ELBO falls" not in figures["curves"].make(grouped([gaussian])).caption
