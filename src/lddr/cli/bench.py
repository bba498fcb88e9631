"""`lddr bench …`."""

from tyro.extras import SubcommandApp

from lddr.cli.app import Columns, File, Whole, app, listed
from lddr.hardware import check_threads

bench = SubcommandApp()
app.command(bench, name="bench", help="Measure how fast this machine trains.")


@bench.command(name="train")
def bench_train(
    steps: Whole = None,
    threads: int = 1,
    device: str = "cpu",
    compile: bool = False,  # noqa: A002
    out: File = None,
) -> None:
    """Time training steps, ours in fp32 and bf16, compared with plain PyTorch and with the limit of the device.

    Args:
        steps: How many steps to time in each repeat; left out, 5 on the CPU and 200 elsewhere.
        threads: CPU threads.
        device: cpu, cuda, mps, or auto for the best there is.
        compile: Also measure ours compiled, as with `lddr train --compile`.
        out: Also write the table as JSON here.
    """
    from lddr.bench import run_train

    check_threads(threads)
    run_train(steps, threads, out, device, compile)


@bench.command(name="models")
def bench_models(
    models: Columns = "dvae,factor-dvae,categorical+klm,categorical+nhp,fsq-ae,tripod",
    dataset: str = "dsprites",
    preset: str = "paper",
    threads: int = 1,
    out: File = None,
) -> None:
    """Time training steps of several models on the CPU in turns, compared with the first: what an objective costs.

    Args:
        models: Their names, or points of the grid such as categorical+nhp.
        dataset: The dataset.
        preset: paper, standard or quick.
        threads: CPU threads.
        out: Also write the table as JSON here.
    """
    from lddr.bench import run_models

    check_threads(threads)
    run_models(listed(models), dataset, preset, threads, out)
