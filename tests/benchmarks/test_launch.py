import pytest
import torch

from benchmarks import launch
from benchmarks.launch import META, Launches


def test_launches_are_counted_and_views_are_not():
    weights, images = torch.ones(4, 3, device=META, requires_grad=True), torch.ones(3, 2, device=META)
    with Launches() as counter:
        (weights @ images).T[0].unsqueeze(1).relu()
    assert counter.launches == {"mm": 1, "relu": 1}
    with Launches() as counter:
        (2 * weights).sum().backward()
    assert counter.launches == {"mul": 2, "sum": 1, "ones_like": 1}  # the gradient of a sum is a view
    assert not counter.copies
    assert not counter.reads


def test_adam_is_one_launch():
    weights = [torch.ones(4, 3, device=META) for _ in range(5)]
    steps = [torch.zeros((), device=META) for _ in weights]
    options = {"beta1": 0.9, "beta2": 0.999, "weight_decay": 0.0, "eps": 1e-8, "amsgrad": False, "maximize": False}
    with Launches() as counter:
        torch._fused_adam_(weights, weights, weights, weights, [], steps, lr=1e-3, **options)
    assert counter.launches == {"_fused_adam_": 1}


def test_copies_to_the_device_and_work_on_the_host_are_seen():
    with Launches() as counter:
        torch.ones(3).to(META)
        torch.tensor([1.0, 2.0], device=META)
        torch.zeros(3, device=META).copy_(torch.ones(3))
    assert sum(counter.copies.values()) == 3
    assert counter.on_host["ones"] == 2


@pytest.mark.parametrize(
    "read",
    [
        lambda tensor: tensor.item(),
        lambda tensor: tensor.cpu(),
        lambda tensor: bool(tensor > 0),
        lambda tensor: tensor.tolist(),
        lambda tensor: float(tensor),
    ],
)
def test_a_value_read_back_is_seen_and_fails(read):
    value = torch.zeros((), device=META)
    with Launches() as counter, pytest.raises((RuntimeError, NotImplementedError)):
        read(value)
    assert sum(counter.reads.values()) == 1


def test_the_table_has_a_row_for_every_model(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(launch, "models", ["vae", "factor-dvae"])
    launch.run_bench(tmp_path / "launch.json")
    printed = capsys.readouterr().out
    assert "factor-dvae" in printed
    assert "launches" in printed
    assert (tmp_path / "launch.json").exists()
