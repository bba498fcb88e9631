"""The models that ship with lddr: finished runs in a folder of the package, which nobody writes to."""

from pathlib import Path

from lddr.errors import UserError, hint

HOME = Path(__file__).parents[1] / "pretrained"
LIST = "lddr models --pretrained"  # the command that tells what there is


def names() -> list[str]:
    """What they are called."""
    return sorted(folder.parent.name for folder in HOME.glob("*/config.json"))


def is_shipped(folder: Path) -> bool:
    """Whether a folder belongs to the package."""
    return folder.resolve().is_relative_to(HOME.resolve())


def located(given: str | Path) -> Path:
    """The folder that is meant: one that exists, else the shipped model of this name."""
    name, path = str(given), Path(given)
    if path.exists() or Path(name).name != name:
        return path
    if name in names():
        return HOME / name
    if near := hint(name, names()):
        raise UserError(f"there is no folder {name}; {near}See the models that ship with lddr: {LIST}")
    return path
