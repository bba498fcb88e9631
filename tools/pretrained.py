"""Ship a trained model with lddr, or a better one in its place.

python tools/pretrained.py RUN NAME ["What it shows, in a sentence."]

The sentence of a model that is there already stays when none is given. Weights are kept in 16 bits, and every score on
the card is measured again with them.
"""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from lddr.metrics.elbo import bounds
from lddr.runs.evaluate import evaluate_run
from lddr.runs.folder import PRETRAINED, RunFolder
from lddr.sharing import pack, write_model_card
from lddr.trained import Trained

KEPT = ("README.md", "traversals.png", "config.json", "log.jsonl", "model.safetensors", "scores.json")
LARGEST = 1_000_000  # bytes of all files: everybody who installs lddr downloads them


def ship(run: Path, name: str, about: str, metrics: str | None = None) -> Path:
    """Pack a run, measure what was packed, write its card, and put it into the package."""
    with TemporaryDirectory() as place:
        packed = pack(Trained.load(run), Path(place) / name, about, half=True)
        packed.write_scores(bounds(Trained.load(packed.path).vae, packed.config.training.steps, packed.dataset))
        evaluate_run(packed.path, metrics, device="cpu")
        write_model_card(packed, name, packed, licence="mit")
        size = sum((packed.path / file).stat().st_size for file in KEPT)
        if size > LARGEST:
            sys.exit(f"{name} takes {size:,} bytes; ship a smaller model")
        shutil.rmtree(PRETRAINED / name, ignore_errors=True)
        (PRETRAINED / name).mkdir(parents=True)
        for file in KEPT:
            shutil.copyfile(packed.path / file, PRETRAINED / name / file)
    return PRETRAINED / name


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    run, name, *words = sys.argv[1:]
    known = RunFolder(PRETRAINED / name)
    print(ship(Path(run), name, words[0] if words else known.about if known.is_run else ""))
