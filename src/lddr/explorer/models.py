"""The models of run folders: opened from safetensors, kept for a while, the last few only."""

from pathlib import Path

from lddr.data.dataset import Dataset, stream
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.explorer.cache import SharedCache
from lddr.explorer.catalogue import GoneError
from lddr.explorer.open_model import OpenModel, latent_of
from lddr.runs.folder import RunFolder
from lddr.trained import Trained

MODELS, DATASETS = 8, 4  # kept in memory
SAMPLED = 64  # images that the KL of each latent is the mean of


class Models:
    """Opens the models of run folders and keeps the last few of them."""

    def __init__(self) -> None:
        self._datasets: SharedCache[tuple[str, int | None], Dataset] = SharedCache(
            lambda key: load_dataset(*key), DATASETS
        )
        self._models: SharedCache[tuple[Path, tuple[int, ...]], OpenModel] = SharedCache(
            lambda key: self._load(key[0]), MODELS
        )

    def opened(self, folder: Path) -> OpenModel:
        """The model of a folder; a file that was written anew is read anew."""
        try:
            facts = RunFolder(folder).model_file.stat()
        except OSError as error:
            if not RunFolder(folder).is_run:
                raise GoneError("this run is no longer there; go back to the runs and choose another") from error
            raise UserError("this run has no model yet: it is training or was stopped; see its metrics") from error
        return self._models.get((folder, (facts.st_ino, facts.st_mtime_ns, facts.st_size)))

    def _load(self, folder: Path) -> OpenModel:
        trained = Trained.load(folder)
        try:
            dataset = self._datasets.get((trained.config.dataset, trained.config.resolution))
            if dataset.image_shape != trained.image_shape:
                raise UserError(f"the model knows images {trained.image_shape}, these are {dataset.image_shape}")
        except (UserError, OSError, ValueError) as error:
            return OpenModel(trained, None, str(error), None)
        drawn = dataset.images(dataset.space.sample(stream(0, "explorer"), SAMPLED))
        return OpenModel(trained, dataset, None, latent_of(trained, drawn).kl.mean(0).tolist())
