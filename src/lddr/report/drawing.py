"""Every figure of a registry that the runs allow, as files and for a page; for the others, what is missing."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from lddr.errors import UserError
from lddr.files import written_whole
from lddr.registry import Registry
from lddr.report.figures import ReportFigure, in_order
from lddr.report.page import DPI, Picture
from lddr.report.style import rendered
from lddr.runs.index import Run

Source = TypeVar("Source")
Missing = dict[str, str]  # title → what is missing for it

TRAVERSAL_TITLE = "Traversals, animated"
TRAVERSAL_CAPTION = "Every latent goes through its values and back, the others kept."


def drawn(
    registry: Registry[ReportFigure[Source]], source: Source, folder: Path, prefix: str = ""
) -> tuple[list[Picture], Missing]:
    """Draw all figures of a registry, write each as PNG and SVG, and tell which could not be drawn."""
    pictures, missing = [], {}
    for figure in _tracked(in_order(registry)):
        try:
            drawing, caption = figure.draw(source), figure.caption(source)
        except UserError as reason:
            missing[figure.title] = str(reason)
            continue
        name = prefix + figure.name
        files = {kind: rendered(drawing, kind, DPI) for kind in ("png", "svg")}
        for kind, content in files.items():
            with written_whole(folder / f"{name}.{kind}") as draft:
                draft.write_bytes(content)
        pictures.append(Picture(name, figure.title, caption, files["png"]))
    return pictures, missing


def animation(run: Run, folder: Path, prefix: str = "") -> list[Picture]:
    """The animated traversals of a run; nothing where its model or its images are not here."""
    from lddr.report.pictures import write_traversals

    path = folder / f"{prefix}traversals.gif"
    try:
        write_traversals(run, path)
    except UserError:  # the still traversals, which need the same, say why
        return []
    return [Picture(f"{prefix}animation", TRAVERSAL_TITLE, TRAVERSAL_CAPTION, path.read_bytes())]


def _tracked(figures: list[ReportFigure[Source]]) -> Iterable[ReportFigure[Source]]:
    """Show on a terminal how far it is."""
    from rich.console import Console
    from rich.progress import track

    if not figures or sys.stderr is None or not sys.stderr.isatty():
        return figures
    return track(figures, "drawing", console=Console(stderr=True), transient=True)
