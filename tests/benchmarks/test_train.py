import json

import pytest
import torch

from benchmarks import train as bench
from benchmarks.launch import Launches
from benchmarks.train import PlainTraining, Worker, plain_discriminator, plain_networks
from lddr import bench as installed
from lddr.config import configure
from lddr.data.load import load_dataset
from lddr.hardware import chosen_device, matmul_peak
from lddr.training.trainer import Trainer


def test_the_operations_of_a_step_by_hand():
    encoder = (
        32**2 * 16 * 32 + 16**2 * 16 * 32 * 32 + 8**2 * 16 * 32 * 64 + 4**2 * 16 * 64 * 64 + 1024 * 256 + 256 * 640
    )
    decoder = 10 * 256 + 256 * 1024 + 16 * (4**2 * 64 * 64 + 8**2 * 64 * 32 + 16**2 * 32 * 32 + 32**2 * 32)
    first = 32**2 * 16 * 32  # the gradient of the images is not computed
    expected = 2 * 64 * (3 * (encoder + decoder) - first)
    assert abs(bench.operations("dvae", "dsprites") / expected - 1) < 0.01


@pytest.mark.long
@pytest.mark.parametrize("factor", [False, True])
def test_a_plain_step_trains_every_network(factor):
    training = PlainTraining(load_dataset("dsprites"), factor)
    networks = [training.encoder, training.decoder, *([training.discriminator] if factor else [])]
    before = [weight.detach().clone() for network in networks for weight in network.parameters()]
    training.step()
    after = [weight for network in networks for weight in network.parameters()]
    assert all(not torch.equal(one, other) for one, other in zip(before, after, strict=True))


@pytest.mark.long
def test_a_plain_step_runs_on_the_device_and_copies_the_images_only():
    training = PlainTraining(load_dataset("dsprites"), True, "meta")
    training.step()
    with Launches() as counter:
        training.step()
    assert sum(counter.copies.values()) == 1
    assert not counter.reads
    assert counter.launches["convolution"] == 8
    assert not {"convolution", "addmm", "mm"} & counter.on_host.keys()


def test_the_table_is_the_same_on_every_device(monkeypatch, tmp_path):
    workers = []

    class Idle:
        def __init__(self, function, *arguments):
            workers.append(arguments)

        def __enter__(self):
            return self

        def __exit__(self, *problem):
            pass

        def run(self, times):
            return times

        def peak_megabytes(self):
            return 1.0

    monkeypatch.setattr(bench, "Worker", Idle)
    monkeypatch.setattr(bench, "operations", lambda *given: 10**9)
    monkeypatch.setattr(bench, "matmul_peak", lambda *given, **more: 1e12)
    monkeypatch.setattr(bench, "has_fast_bf16", lambda device: True)
    tables = []
    for device, compiled in (("cpu", False), ("meta", False), ("meta", True)):
        bench.run_bench(None, 1, tmp_path / "table.json", device, compiled)
        tables.append(json.loads((tmp_path / "table.json").read_text()))
    headings = [set(row) for table in tables for row in table]
    assert (
        headings[0]
        == headings[4]
        == {"model", "dataset", *(f"limit {name}, ms" for name in ("fp32", "bf16"))}
        | {f"{name}, {what}" for name in ("usual", "fp32", "bf16") for what in ("ms", "times faster", "peak MB")}
        - {"usual, times faster"}
    )
    assert "fp32 compiled, ms" in headings[8]
    assert ("fp32 compiled", "dvae", "dsprites", "1", "meta") in workers
    assert ("bf16", "factor-dvae", "rooms", "1", "cpu") in workers


def test_the_installed_table_says_how_long_a_run_of_the_paper_takes(monkeypatch, tmp_path):
    monkeypatch.setattr(installed, "next_step", lambda config, device, compiled, times: lambda: times)
    monkeypatch.setattr(installed, "has_fast_bf16", lambda device: True)
    installed.run_train(2, 1, tmp_path / "table.json", "cpu", True)
    first, *_ = rows = json.loads((tmp_path / "table.json").read_text())
    assert [(row["model"], row["dataset"]) for row in rows] == [
        ("dvae", "dsprites"), ("dvae", "rooms"), ("factor-dvae", "dsprites"), ("factor-dvae", "rooms"),
    ]  # fmt: skip
    assert [name for name in first if name.endswith(", ms")] == [
        "fp32, ms", "fp32 compiled, ms", "bf16, ms", "bf16 compiled, ms",
    ]  # fmt: skip
    assert first["hours for the paper's 300,000 steps"] >= 0


@pytest.mark.long
@pytest.mark.parametrize("side", ["usual", "fp32"])
def test_a_worker_repeats_in_a_process_of_its_own(side):
    with Worker("benchmarks.train:prepared", side, "factor-dvae", "dsprites", "1") as worker:
        assert worker.run(2) == 2
        assert worker.peak_megabytes() > 50


@pytest.mark.long
def test_a_worker_that_fails_says_so():
    with Worker("benchmarks.train:prepared", "usual", "dvae", "nonsense", "1") as worker:
        with pytest.raises(RuntimeError, match="ended early"):
            worker.run(1)


@pytest.mark.long
def test_both_sides_train_models_of_the_same_size():
    trainer = Trainer(configure("factor-dvae", "dsprites"), load_dataset("dsprites"), torch.device("cpu"))
    plain = [*plain_networks(1), plain_discriminator()]
    ours = [trainer.vae.encoder, trainer.vae.decoder, trainer.objective.discriminator]
    for one, other in zip(ours, plain, strict=True):
        assert sum(w.numel() for w in one.parameters()) == sum(w.numel() for w in other.parameters())


def test_the_peak_is_positive_and_the_cpu_is_always_there():
    assert matmul_peak(torch.float32, 64, 2) > 0
    assert chosen_device("cpu").type == "cpu"
    assert chosen_device("auto").type in ("cpu", "cuda", "mps")
