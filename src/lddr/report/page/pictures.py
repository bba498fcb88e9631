"""Every figure of a registry that the runs allow, as files and for a page."""

from pathlib import Path

from lddr.console import watched
from lddr.files import written_whole
from lddr.report.exhibits import Missing, Source, made
from lddr.report.figures.figure import Figures
from lddr.report.page.html import DPI, Picture
from lddr.report.style import rendered_as


def pictures_of(
    figures: Figures[Source], source: Source, folder: Path, missing: Missing, prefix: str = ""
) -> list[Picture]:
    """Draw all figures, write each as PNG and SVG, and note which could not be drawn."""
    pictures = []
    for exhibit, drawn in made(watched(figures.in_order(), "drawing"), source, missing):
        name = prefix + exhibit.name
        content = rendered_as(("png", "svg"), drawn.figure, DPI)
        for kind, held in content.items():
            write(folder / f"{name}.{kind}", held)
        pictures.append(Picture(name, exhibit.title, drawn.caption, content["png"]))
    return pictures


def write(path: Path, content: bytes) -> None:
    """A file of a page."""
    with written_whole(path) as draft:
        draft.write_bytes(content)
