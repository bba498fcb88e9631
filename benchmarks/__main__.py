"""Benchmarks of developers: `python -m benchmarks NAME`, from the folder of the repository."""

from tyro.extras import SubcommandApp

from lddr.cli.app import File
from lddr.hardware import check_threads

app = SubcommandApp()


@app.command(name="data")
def bench_data(batches: int = 200, out: File = None) -> None:
    """Images per second in batches of 64, compared with one Python call per image, and the memory of each.

    Args:
        batches: How many batches of ours to time in each repeat.
        out: Also write the table as JSON here.

    """
    from benchmarks.data import run_bench

    run_bench(batches, out)


@app.command(name="layers")
def bench_layers(threads: int = 1, out: File = None) -> None:
    """Where the time of a training step goes: every layer, forward and backward, compared with multiplying alone.

    Args:
        threads: CPU threads.
        out: Also write the table as JSON here.
    """
    from benchmarks.layers import run_bench

    check_threads(threads)
    run_bench(threads, out)


@app.command(name="launch")
def bench_launch(out: File = None) -> None:
    """What a training step of every model asks of a GPU: operations launched, copies, values read back; without one.

    Args:
        out: Also write the table as JSON here.
    """
    from benchmarks.launch import run_bench

    run_bench(out)


@app.command(name="metrics")
def bench_metrics(threads: int = 1, out: File = None) -> None:
    """Encoding for all metrics, each distinct image once, compared with every draw in batches of 16 (published).

    Args:
        threads: CPU threads.
        out: Also write the table as JSON here.
    """
    from benchmarks.metrics import run_bench

    check_threads(threads)
    run_bench(threads, out)


@app.command(name="sweep")
def bench_sweep(out: File = None) -> None:
    """Runs per hour of a sweep with one and two workers, and what the engine costs per run.

    Args:
        out: Also write the table as JSON here.
    """
    from benchmarks.sweep import run_bench

    run_bench(out)


@app.command(name="dci")
def bench_dci(out: File = None) -> None:
    """How far the scores of --dci fast are from the published ones, over many representations, and how fast it is.

    Args:
        out: Also write the table as JSON here.
    """
    from benchmarks.dci import run_bench

    run_bench(out)


@app.command(name="explore")
def bench_explore(out: File = None) -> None:
    """From moving a slider to the new picture, and opening a folder of 1 000 runs, in Chromium.

    Args:
        out: Also write the table as JSON here.
    """
    from benchmarks.explore import run_bench

    run_bench(out)


if __name__ == "__main__":
    app.cli(prog="python -m benchmarks")
