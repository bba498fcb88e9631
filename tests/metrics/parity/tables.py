"""The fixed codes of docs/parity.md: four tables of 300 rows that are kept, and representations of `circles`."""

from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SIZES = (3, 4, 6)
ROWS, TRAIN = 300, 200
KINDS = ("perfect", "rotated", "noisy", "discrete")


def drawn(kind, rows=ROWS, seed=0):
    """Codes (rows, 4) in 32 bits and factors (rows, 3); the tables that are kept are those of seed 0."""
    generator = np.random.default_rng(seed)
    factors = generator.integers(SIZES, size=(rows, 3))
    noise, mixing = generator.normal(size=(rows, 4)), np.random.default_rng(1).normal(size=(3, 4))
    units = 2 * factors / (np.array(SIZES) - 1) - 1  # between -1 and 1
    codes = np.concatenate([units, np.zeros((rows, 1))], axis=1) + 0.01 * noise
    if kind == "rotated":
        codes[:, :2] = codes[:, :2] @ turn()
    if kind == "noisy":
        codes = units @ mixing + 0.3 * noise
    if kind == "discrete":  # 41 values of saturated latents, half of which lie on the edges of 20 bins
        units = np.concatenate([units, units[:, :1] * units[:, 1:2]], axis=1)
        codes = np.linspace(-1, 1, 41)[np.clip(np.rint(20 * units + 20 + 3 * noise), 0, 40).astype(int)]
    return codes.astype(np.float32), factors


def turn(degrees=30):
    angle = np.radians(degrees)
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


def kept():
    """Kind → codes and factors, as they are in the file."""
    with np.load(HERE / "tables.npz") as file:
        return {kind: (file[kind], file["factors"].astype(np.int64)) for kind in KINDS}


def keep():
    tables = {kind: drawn(kind) for kind in KINDS}
    np.savez_compressed(
        HERE / "tables.npz",
        factors=tables["perfect"][1].astype(np.uint8),
        **{kind: codes for kind, (codes, _) in tables.items()},
    )


def parts(codes, factors):
    """To train on and to test on."""
    return codes[:TRAIN], factors[:TRAIN], codes[TRAIN:], factors[TRAIN:]


def representation(kind):
    """From images of circles to codes: the centre of the light, or something made of it."""

    def represent(images):
        light = images[..., 0] / images.sum(axis=(1, 2, 3))[:, None, None]
        places = np.linspace(-1, 1, images.shape[1])
        centre = 2 * np.stack([light.sum(axis=1) @ places, light.sum(axis=2) @ places], axis=1)
        x, y = centre.T
        made = {
            "perfect": centre,
            "rotated": centre @ turn(),
            "noisy": np.stack([x + y**2, 0.8 * y + 0.6 * x, np.sin(20 * x * y) + 0.3 * x], axis=1),
            "discrete": np.rint(3 * centre) / 3,
        }
        return made[kind].astype(np.float32)

    return represent
