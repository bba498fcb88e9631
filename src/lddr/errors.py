"""Errors that the user can fix: one exception, suggestions for misspelt names, and the extra that is missing."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.util import find_spec

OPTIONAL_PACKAGES = {  # package → its title, and the extra of lddr that installs it; None for trackers
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


class UserError(Exception):
    """An error that the user can fix: its message is one sentence that says how.

    Examples
    --------
    >>> import lddr
    >>> try:
    ...     lddr.load_dataset("cirlces")
    ... except lddr.UserError as error:
    ...     print(str(error).partition("?")[0])
    unknown dataset 'cirlces'; did you mean 'circles'
    """


class MissingExtraError(UserError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str) -> None:
        title, extra = OPTIONAL_PACKAGES[package]
        wanted = f'"lddr[{extra}]"' if extra else package
        super().__init__(f"{title} is not installed; get it with: pip install {wanted}")


@contextmanager
def suggesting_extras() -> Iterator[None]:
    """Turn the failed import of an optional dependency into an error that names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in OPTIONAL_PACKAGES:
            raise
        raise MissingExtraError(package) from error


def check_installed(*packages: str) -> None:
    """Raise an error if an optional dependency is not installed, without importing it."""
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtraError(package)


def hint(name: str, known: Iterable[str]) -> str:
    """Suggest the known name nearest to this one, as a question with a trailing space; empty if none is similar."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}? " if close else ""


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the error message for an unknown name, with the nearest known one."""
    return f"unknown {kind} {name!r}; " + (hint(name, known).rstrip() or f"there are: {', '.join(sorted(known))}")
