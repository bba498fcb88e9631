"""Ship a trained model with lddr, or a better one in its place.

python tools/pretrained.py RUN NAME ["What it shows, in a sentence."] [--samples 16] [--metrics mig,sap]

The sentence of a model that is there already stays when none is given. Weights are kept in 16 bits, and every score on
the card is measured again with them. A model of other images than lddr's own needs samples to show; their licence must
allow it, and the sentence has to name it.
"""

import argparse
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from lddr.metrics.elbo import bounds
from lddr.runs.evaluate import evaluate_run
from lddr.runs.folder import PRETRAINED, RunFolder
from lddr.sharing import FILES, pack, write_model_card
from lddr.trained import Trained

LARGEST = 1_000_000  # bytes of all files: everybody who installs lddr downloads them


def ship(run: Path, name: str, about: str, metrics: str | None = None, samples: int = 0) -> Path:
    """Pack a run, measure what was packed, write its card, and put it into the package."""
    with TemporaryDirectory() as place:
        dataset = RunFolder(run).dataset
        packed = pack(Trained.load(run), Path(place) / name, about, half=True, samples=samples)
        packed.write_scores(bounds(Trained.load(packed.path).vae, packed.config.training.steps, dataset))
        evaluate_run(packed.path, metrics, device="cpu", dataset=dataset)
        write_model_card(packed, name, packed, licence="mit")
        kept = [packed.path / file for file in FILES if (packed.path / file).exists()]
        size = sum(file.stat().st_size for file in kept)
        if size > LARGEST:
            sys.exit(f"{name} takes {size:,} bytes; ship a smaller model")
        shutil.rmtree(PRETRAINED / name, ignore_errors=True)
        (PRETRAINED / name).mkdir(parents=True)
        for file in kept:
            shutil.copyfile(file, PRETRAINED / name / file.name)
    return PRETRAINED / name


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("name")
    parser.add_argument("about", nargs="?")
    parser.add_argument("--samples", type=int, default=0)
    parser.add_argument("--metrics", help="those that say something about its factors; all that are fast by default")
    given = parser.parse_args()
    known = RunFolder(PRETRAINED / given.name)
    about = given.about if given.about is not None else known.about if known.is_run else ""
    print(ship(given.run, given.name, about, given.metrics, given.samples))
