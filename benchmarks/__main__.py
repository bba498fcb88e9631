"""Benchmarks of developers: `python -m benchmarks NAME`, from the folder of the repository."""

from importlib import import_module
from pathlib import Path

from lddr.cli.app import Commands, flag, option, out_file, threads
from lddr.hardware import check_threads

app = Commands("benchmarks")
out = out_file("Also write the table as JSON here.")


@app.command()
@option("--batches", type=int, default=200, help="Batches of ours to time in each repeat.")
@out
def data(batches: int, out: Path | None) -> None:
    """Images per second in batches of 64, compared with one Python call per image, and the memory of each."""
    from benchmarks.data import run_bench

    run_bench(batches, out)


@app.command()
@threads
@out
def layers(threads: int, out: Path | None) -> None:
    """Time of every layer in a training step, forward and backward, compared with the matmuls alone."""
    from benchmarks.layers import run_bench

    check_threads(threads)
    run_bench(threads, out)


@app.command()
@threads
@out
def metrics(threads: int, out: Path | None) -> None:
    """Encoding for all metrics, each distinct image once, compared with every draw in batches of 16 (published)."""
    from benchmarks.metrics import run_bench

    check_threads(threads)
    run_bench(threads, out)


@app.command()
@option("--steps", type=int, help="Steps in each repeat.  [default: 5 on the CPU, 200 elsewhere]")
@threads
@option("--device", default="cpu", metavar="NAME", help="cpu, cuda, mps, or auto for the best there is.")
@flag("--compile", "Also measure ours compiled, as with `lddr train --compile`.")
@out
def train(steps: int | None, threads: int, device: str, compile: bool, out: Path | None) -> None:  # noqa: A002
    """Training steps, ours in fp32 and bf16, compared with plain PyTorch and with the limit of the device."""
    from benchmarks.train import run_bench

    check_threads(threads)
    run_bench(steps, threads, out, device, compile)


@app.command()
@option("--python", "pythons", multiple=True, metavar="NAME=PATH", help="The Python of a peer's environment.")
@out
def peers(pythons: tuple[str, ...], out: Path | None) -> None:
    """Training steps with the paper's networks, compared with pythae, disent and JAX, each in its own environment."""
    from benchmarks.peers import run_bench

    run_bench(pythons, out)


OTHERS = {
    "launch": "What a training step of every model asks of a GPU: launches, copies, values read back; without one.",
    "sweep": "Runs per hour of a sweep with one and two workers, and what the engine costs per run.",
    "dci": "How far the scores of --dci fast are from the published ones, over many representations, and its speed.",
    "explore": "From moving a slider to the new picture, and opening a folder of 1,000 runs, in Chromium.",
}


def _add(name: str, help: str) -> None:  # noqa: A002
    @app.command(name=name, help=help)
    @out
    def bench(out: Path | None) -> None:
        import_module(f"benchmarks.{name}").run_bench(out)


for name, help_text in OTHERS.items():
    _add(name, help_text)


if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
