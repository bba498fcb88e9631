"""A self-contained HTML page: sortable tables, embedded pictures, and no network requests."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from importlib.resources import files
from io import BytesIO

from lddr.report.exhibits import EMPTY, FORMATS, Cell, Number, Table
from lddr.runs.tables import as_number

DOWNLOADS = {"csv": ("CSV", "text/csv"), "tex": ("LaTeX", "application/x-tex"), "md": ("Markdown", "text/markdown")}
DPI, CSS_DPI = 150, 96  # pictures have a higher resolution than the screen
WIDE = 620  # pixels: a wider picture has its own row
ABREAST = 3  # pictures next to each other at most
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


@dataclass(frozen=True)
class Picture:
    """A figure on a page: the bytes of a PNG or GIF file, its title and its caption."""

    name: str
    title: str
    caption: str
    content: bytes

    @property
    def kind(self) -> str:
        return "gif" if self.content.startswith(b"GIF8") else "png"

    @property
    def size(self) -> tuple[int, int]:
        """Width and height on the page, in pixels."""
        from PIL import Image

        scale = CSS_DPI / DPI if self.kind == "png" else 1
        with Image.open(BytesIO(self.content)) as picture:
            return round(picture.width * scale), round(picture.height * scale)


@dataclass(frozen=True)
class Section:
    """A heading, linked from the page's menu, and the HTML below it."""

    title: str
    body: str

    @property
    def anchor(self) -> str:
        return "".join(letter if letter.isalnum() else "-" for letter in self.title.lower())


def page(title: str, lead: str, sections: Sequence[Section], footer: str = "") -> str:
    """Return the whole document; empty sections are left out."""
    shown = [section for section in sections if section.body]
    menu = "".join(f'<a href="#{section.anchor}">{escape(section.title)}</a>' for section in shown)
    body = "".join(
        f'<section aria-labelledby="{section.anchor}"><h2 id="{section.anchor}">{escape(section.title)}</h2>'
        f"{section.body}</section>"
        for section in shown
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{_read("page.css")}</style>
</head>
<body>
<header><div><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p></div></header>
<nav aria-label="Sections"><div>{menu}</div></nav>
<main>{body}<footer>{escape(footer)}</footer></main>
<script>{_read("page.js")}</script>
</body>
</html>
"""


def _read(name: str) -> str:
    return (files("lddr.report") / name).read_text(encoding="utf-8")


def table_card(table: Table, downloads: bool = True, tall: bool = False) -> str:
    """Return a table with its title, its notes, and downloads in other formats."""
    notes = "".join(f"<li>{escape(note)}</li>" for note in table.notes)
    parts = [
        f'<div class="card" id="table-{escape(table.name)}"><h3>{escape(table.title)}</h3>',
        f'<div class="scroll{" tall" if tall else ""}" tabindex="0" role="region" aria-label="{escape(table.title)}">',
        _table(table),
        "</div>",
        f'<ul class="notes">{notes}</ul>' if notes else "",
        _downloads(table) if downloads else "",
        "</div>",
    ]
    return "".join(parts)


def _table(table: Table) -> str:
    kinds = [_kind(table, place) for place in range(len(table.columns))]
    heads = "".join(
        f'<th scope="col" aria-sort="none" class="{kind}"><button type="button">{escape(heading)}</button></th>'
        for heading, kind in zip(table.columns, kinds, strict=True)
    )
    rows = "".join(f"<tr>{''.join(map(partial(_cell, table), row, kinds))}</tr>" for row in table.rows)
    return f'<table class="sortable"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'


def _kind(table: Table, place: int) -> str:
    """Return a cell's CSS class: labels and text are left-aligned, the paper's numbers are muted."""
    if place == 0 or table.columns[place].startswith("paper:"):
        return "paper" if place else "label"
    cells = [row[place] for row in table.rows]
    return "words" if all(isinstance(cell, str) and cell and as_number(cell) is None for cell in cells) else ""


def _cell(table: Table, cell: Cell, kind: str) -> str:
    if kind == "label":
        return f'<th scope="row" class="label">{escape(table.text(cell))}</th>'
    if cell is None or cell == "":
        return f'<td class="empty">{EMPTY}</td>'
    if isinstance(cell, str):
        return f'<td class="{kind}">{escape(cell)}</td>'
    return f'<td class="{"best" if cell.best else kind}" data-value="{cell.value!r}">{_number(table, cell)}</td>'


def _number(table: Table, number: Number) -> str:
    text = table.digits(number.value)
    if number.low is not None:
        text += f' <span class="spread">[{table.digits(number.low)}, {table.digits(number.high)}]</span>'
    if number.count is not None:
        text += f' <span class="count">({number.count})</span>'
    return text + (f"<sup>{escape(number.all_marks)}</sup>" if number.all_marks else "")


def _downloads(table: Table) -> str:
    links = []
    for ending, (title, kind) in DOWNLOADS.items():
        address = data_address(FORMATS[ending](table).encode(errors="replace"), kind)
        links.append(f'<a download="{table.name}.{ending}" href="{address}">{title}</a>')
    return f'<p class="files">{" · ".join(links)}</p>'


def data_address(content: bytes, kind: str) -> str:
    """Return a data URL that contains the file."""
    return f"data:{kind};base64,{b64encode(content).decode()}"


def table_cards(tables: Iterable[Table]) -> str:
    """Lay out tables at their natural width, small ones next to each other."""
    cards = "".join(map(table_card, tables))
    return f'<div class="tables">{cards}</div>' if cards else ""


def gallery(pictures: Iterable[Picture]) -> str:
    """Lay out pictures in pairs; wide ones get their own row."""
    cards = "".join(_picture_card(picture, picture.size[0] > WIDE) for picture in pictures)
    return f'<div class="pictures">{cards}</div>' if cards else ""


def side_by_side(pictures: Sequence[Picture]) -> str:
    """Lay out pictures of the same type next to each other, whatever their width."""
    cards = "".join(_picture_card(picture) for picture in pictures)
    return f'<div class="pictures row" style="--columns: {min(len(pictures), ABREAST)}">{cards}</div>'


def _picture_card(picture: Picture, wide: bool = False) -> str:
    width, height = picture.size
    return (
        f'<figure class="card{" wide" if wide else ""}" id="figure-{escape(picture.name)}">'
        f"<h3>{escape(picture.title)}</h3>"
        f'<button type="button" class="picture" aria-pressed="false" aria-label="Enlarge: {escape(picture.title)}">'
        f'<img alt="{escape(picture.caption or picture.title)}" width="{width}" height="{height}" '
        f'style="--full: {width}px" src="{data_address(picture.content, f"image/{picture.kind}")}"></button>'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
    )


def facts_card(title: str, facts: Mapping[str, object], warning: bool = False) -> str:
    """Return a card with names and values."""
    if not facts:
        return ""
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in facts.items())
    heading = f"<h3>{escape(title)}</h3>" if title else ""
    return f'<div class="card{" warning" if warning else ""}">{heading}<dl>{items}</dl></div>'


def missing_card(missing: Mapping[str, str]) -> str:
    """Return a collapsed list of the exhibits that could not be made, with the reasons."""
    summary = f"<summary>{len(missing)} tables and figures need more runs or scores</summary>"
    return f"<details>{summary}{facts_card('', missing)}</details>" if missing else ""


def code_card(title: str, lines: Sequence[str]) -> str:
    """Return a card with commands to copy."""
    text = escape("\n".join(lines))
    return f'<div class="card"><h3>{escape(title)}</h3><pre tabindex="0"><code>{text}</code></pre></div>'
