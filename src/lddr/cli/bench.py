"""`lddr bench …`."""

from tyro.extras import SubcommandApp

from lddr.cli.app import Columns, File, Whole, app, listed
from lddr.runs.machine import check_threads

bench = SubcommandApp()
app.command(bench, name="bench", help="Measure speed and memory side by side with the usual way.")


@bench.command(name="data")
def bench_data(batches: int = 200, out: File = None) -> None:
    """Images per second in batches of 64, ours beside one Python call per image, and the memory of each.

    Args:
        batches: How many batches of ours to time in each repeat.
        out: Also write the table as JSON here.

    """
    from lddr.bench.data import run_bench

    run_bench(batches, out)


@bench.command(name="train")
def bench_train(
    steps: Whole = None,
    threads: int = 1,
    device: str = "cpu",
    compile: bool = False,  # noqa: A002
    out: File = None,
) -> None:
    """Training steps, ours in fp32 and bf16 beside plain PyTorch and beside the limit of the device.

    Args:
        steps: How many steps to time in each repeat; left out, 5 on the CPU and 200 elsewhere.
        threads: CPU threads.
        device: cpu, cuda, mps, or auto for the best there is.
        compile: Also measure ours compiled, as with `lddr train --compile`.
        out: Also write the table as JSON here.
    """
    from lddr.bench.train import run_bench

    check_threads(threads)
    run_bench(steps, threads, out, device, compile)


@bench.command(name="layers")
def bench_layers(threads: int = 1, out: File = None) -> None:
    """Where the time of a training step goes: every layer, forward and backward, beside the limit of multiplying alone.

    Args:
        threads: CPU threads.
        out: Also write the table as JSON here.
    """
    from lddr.bench.layers import run_bench

    check_threads(threads)
    run_bench(threads, out)


@bench.command(name="models")
def bench_models(
    models: Columns = "dvae,factor-dvae,categorical+klm,categorical+nhp,fsq-ae,tripod",
    dataset: str = "dsprites",
    preset: str = "paper",
    threads: int = 1,
    out: File = None,
) -> None:
    """Training steps of several models on the CPU in turns, beside the first of them: what an objective costs.

    Args:
        models: Their names, or points of the grid such as categorical+nhp.
        dataset: Of the images.
        preset: paper or quick.
        threads: CPU threads.
        out: Also write the table as JSON here.
    """
    from lddr.bench.models import run_bench

    check_threads(threads)
    run_bench(listed(models), dataset, preset, threads, out)


@bench.command(name="launch")
def bench_launch(out: File = None) -> None:
    """What a training step of every model asks of a GPU: operations launched, copies, values read back; without one.

    Args:
        out: Also write the table as JSON here.
    """
    from lddr.bench.launch import run_bench

    run_bench(out)


@bench.command(name="metrics")
def bench_metrics(threads: int = 1, out: File = None) -> None:
    """Encoding for all metrics, each distinct image once, beside the published way of every draw in batches of 16.

    Args:
        threads: CPU threads.
        out: Also write the table as JSON here.
    """
    from lddr.bench.metrics import run_bench

    check_threads(threads)
    run_bench(threads, out)


@bench.command(name="sweep")
def bench_sweep(out: File = None) -> None:
    """Runs per hour of a sweep with one and two workers, and what the engine costs per run.

    Args:
        out: Also write the table as JSON here.
    """
    from lddr.bench.sweep import run_bench

    run_bench(out)


@bench.command(name="dci")
def bench_dci(out: File = None) -> None:
    """How far the scores of --dci fast are from the published ones, over many representations, and how fast it is.

    Args:
        out: Also write the table as JSON here.
    """
    from lddr.bench.dci import run_bench

    run_bench(out)


@bench.command(name="explore")
def bench_explore(out: File = None) -> None:
    """From moving a slider to the new picture, and opening a folder of 1 000 runs, in Chromium.

    Args:
        out: Also write the table as JSON here.
    """
    from lddr.bench.explore import run_bench

    run_bench(out)
