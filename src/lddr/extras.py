"""What is installed only when asked for: the package behind each part, the extra that brings it, and the sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from lddr.errors import UserError

PARTS = {  # package → what it is called, and the extra of lddr that has it; of a tracker, its own name
    "h11": ("the explorer", "explore"),
    "huggingface_hub": ("huggingface_hub", "hub"),
    "mlflow": ("MLflow", None),
    "ray": ("Ray", "cluster"),
    "safetensors": ("safetensors", "train"),
    "starlette": ("the explorer", "explore"),
    "tensorboard": ("TensorBoard", "tensorboard"),
    "torch": ("PyTorch", "train"),
    "trackio": ("Trackio", None),
    "uvicorn": ("the explorer", "explore"),
    "wandb": ("Weights & Biases", None),
}


class MissingPartError(UserError, ImportError):
    """Something is asked for that an extra would bring."""


@contextmanager
def extras() -> Iterator[None]:
    """Around what imports parts that may not be installed: a missing one is a sentence that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in PARTS:
            raise
        raise MissingPartError(_sentence(package)) from error


def check_installed(package: str) -> None:
    """Refuse to begin without a package, which is not imported yet."""
    if find_spec(package) is None:
        raise MissingPartError(_sentence(package))


def check_models_open() -> None:
    """Refuse to begin without what opens trained models."""
    for package in ("torch", "safetensors"):
        check_installed(package)


def _sentence(package: str) -> str:
    title, extra = PARTS[package]
    return f"{title} is not installed; get it with: pip install " + (f'"lddr[{extra}]"' if extra else package)
