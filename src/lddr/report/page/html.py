"""One HTML page that needs nothing else: tables that sort, pictures inside, no request to anywhere."""

import html
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from io import BytesIO

from lddr.report.tables.formats import FORMATS
from lddr.report.tables.table import EMPTY, Cell, Number, Table

MIME = {"md": "text/markdown", "tex": "application/x-tex", "csv": "text/csv"}
FORMAT_TITLES = {"csv": "CSV", "tex": "LaTeX", "md": "Markdown"}
DPI, CSS_DPI = 150, 96  # pictures are drawn finer than a screen's pixel
WIDE = 620  # pixels above which a picture has a row of its own
ABREAST = 3  # pictures beside each other at most
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


@dataclass(frozen=True)
class Picture:
    """A figure as it stands on a page: a PNG or GIF file's bytes, what it is called and what it shows."""

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
    """A heading that the page's menu leads to, and the HTML below it."""

    title: str
    body: str

    @property
    def anchor(self) -> str:
        return "".join(letter if letter.isalnum() else "-" for letter in self.title.lower())


def escape(text: str) -> str:
    """Text for a page; a space within a number does not break."""
    return re.sub(r"(?<=\d) (?=\d{3}\b)", "\u00a0", html.escape(text))


def page(title: str, lead: str, sections: Sequence[Section], footer: str = "") -> str:
    """The whole document; empty sections are left out."""
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
    return (files("lddr.report.page") / name).read_text(encoding="utf-8")


def table_card(table: Table, downloads: bool = True, tall: bool = False) -> str:
    """A table with its title, its notes, and its other formats to keep."""
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
    """Labels and words stand to the left, the paper's numbers are quieter."""
    if place < table.labels or table.columns[place].startswith("paper:"):
        return "label" if place < table.labels else "paper"
    cells = [row[place] for row in table.rows]
    return "words" if all(isinstance(cell, str) and not _is_number(cell) for cell in cells) else ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text == ""
    return True


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
    addresses = {
        ending: data_address(FORMATS[ending](table).encode(errors="replace"), MIME[ending]) for ending in FORMAT_TITLES
    }
    links = [
        f'<a download="{table.name}.{ending}" href="{address}">{FORMAT_TITLES[ending]}</a>'
        for ending, address in addresses.items()
    ]
    return f'<p class="files">{" · ".join(links)}</p>'


def data_address(content: bytes, kind: str) -> str:
    """A file as an address that holds all of it."""
    return f"data:{kind};base64,{b64encode(content).decode()}"


def table_cards(tables: Iterable[Table]) -> str:
    """Tables as wide as they need to be, small ones beside each other."""
    return f'<div class="tables">{"".join(map(table_card, tables))}</div>'


def gallery(pictures: Iterable[Picture]) -> str:
    """Pictures two by two, wide ones alone in their row."""
    cards = "".join(_picture_card(picture, picture.size[0] > WIDE) for picture in pictures)
    return f'<div class="pictures">{cards}</div>' if cards else ""


def side_by_side(pictures: Sequence[Picture]) -> str:
    """Pictures of one kind beside each other, whatever their width."""
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
    """Names and what there is to say about them."""
    if not facts:
        return ""
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in facts.items())
    heading = f"<h3>{escape(title)}</h3>" if title else ""
    return f'<div class="card{" warning" if warning else ""}">{heading}<dl>{items}</dl></div>'


def missing_card(missing: Mapping[str, str]) -> str:
    """What could not be shown and why, to unfold: it interests few."""
    summary = f"<summary>What {len(missing)} tables and figures would need</summary>"
    return f"<details>{summary}{facts_card('', missing)}</details>" if missing else ""


def code_card(title: str, lines: Sequence[str]) -> str:
    """Commands to copy."""
    text = escape("\n".join(lines))
    return (
        f'<div class="card"><h3>{escape(title)}</h3><pre tabindex="0"><code>{text}</code></pre></div>' if lines else ""
    )
