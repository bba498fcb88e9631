import torch

from benchmarks import layers


def test_every_layer_has_its_share_of_the_multiplications_and_the_rest_none():
    torch.set_num_threads(1)
    rows = {row["part"]: row for row in layers.measure("dsprites", repeats=1)}
    limits = {name.split(": ")[-1].split(" (")[0]: row["limit"] for name, row in rows.items()}
    unit = limits["head.0"] / (3 * 1024 * 256)  # the time of one multiplication
    by_hand = {
        "convolutions.0": 2 * 32**2 * 16 * 32,  # the gradient of the images is not computed
        "convolutions.1": 3 * 16**2 * 16 * 32 * 32,
        "convolutions.3": 3 * 4**2 * 16 * 64 * 64,
        "stem.0": 3 * 10 * 256,
        "deconvolutions.2": 3 * 16**2 * 16 * 32 * 32,
        "deconvolutions.3": 3 * 32**2 * 16 * 32,
        "latents": 0,
        "Adam": 0,
    }
    assert {name: round(limits[name] / unit) for name in by_hand} == by_hand
    assert abs(limits.pop("all") - sum(limits.values())) < 1e-9
    assert all(row["both"] == row["forward"] + row["backward"] > 0 for row in rows.values())
    assert rows["encoder: convolutions.1 (32 to 32)"]["backward"] > 0
