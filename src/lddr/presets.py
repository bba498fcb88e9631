"""Presets: the paper's settings, and quick ones for a laptop that still show what the paper shows."""

from typing import Any

from lddr.errors import UserError, hint
from lddr.models import Model

PAPER: dict[str, dict[str, Any]] = {"circles": {"num_latents": 2, "decoder": "broadcast"}}

# The D-VAE's lead over the VAE needs weights that begin as torch's do in short trainings (docs/training.md). In `rooms`
# with ten latents, three of them take the red, green and blue of each hue: as many latents as factors are better there.
SHORT = {"width": 16, "initialiser": "uniform"}
QUICK: dict[str, dict[str, Any]] = {
    "circles": PAPER["circles"] | {"resolution": 16, "width": 8, "learning_rate": 3e-4, "steps": 6_000},
    "dsprites": SHORT | {"resolution": 32, "steps": 30_000},
    "rooms": SHORT | {"resolution": 32, "num_latents": 6, "learning_rate": 3e-4, "noise_end": 1.0, "steps": 12_000},
}
ELSEWHERE = SHORT | {"steps": 30_000}  # quick, on a dataset without settings of its own
SAME_SETTINGS = {"color_dsprites": "dsprites", "noisy_dsprites": "dsprites"}
PRESETS = ("paper", "quick")


def preset_settings(preset: str, model: Model, dataset: str) -> dict[str, Any]:
    """What a preset changes from the defaults; settings that the model does not have are left out by who asks."""
    name = SAME_SETTINGS.get(dataset, dataset)
    if preset not in PRESETS:
        raise UserError(f"unknown preset {preset!r}; {hint(preset, PRESETS)}there are: {', '.join(PRESETS)}")
    return PAPER.get(name, {}) if preset == "paper" else QUICK.get(name, ELSEWHERE)
