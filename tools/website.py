"""Make the sources of the site, in three steps that `make docs` runs around a builder (MkDocs or Zensical).

    python -m tools.website pages    # write docs/commands.md, docs/api.md, the tables of other pages and parts.json
    python -m tools.website stage    # gather the pages and files of the site in build/docs, the docs_dir of mkdocs.yml
    python -m tools.website finish   # after the build: let pages opened from disk use the search

Pages link to files of the repository as they lie on disk, so that they also work on GitHub. Staging turns these links
into links of the site: other pages are linked as pages, other files are copied, a link to a folder becomes its text.
"""

import contextlib
import io
import os
import re
import shutil
import sys
from pathlib import Path, PurePosixPath

from tools import commands_page, notebook_page, part_descriptions, python_page

ROOT = Path(__file__).resolve().parents[1]
DOCS, STAGED, SITE = ROOT / "docs", ROOT / "build" / "docs", ROOT / "site"
GENERATED = {"commands.md": commands_page.text, "api.md": python_page.text}
TABLES = {  # page → the command that prints the table between its markers, <!-- datasets --> and <!-- /datasets -->
    "datasets.md": ("datasets", ["data", "list", "--markdown"]),
    "metrics.md": ("metrics", ["metrics", "--markdown"]),
    "settings.md": ("settings", ["models", "--markdown"]),
}
ELSEWHERE = {  # files outside docs/, or not in Markdown, that are pages of the site
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "docs/tutorial.ipynb": "tutorial.md",
    "results/README.md": "results.md",
}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")
_FENCED = re.compile(r"^(```.*?^```[ \t]*$)", re.MULTILINE | re.DOTALL)


def write_pages() -> None:
    """Write the descriptions of parts, the pages of docs/ that are made from the code, and the tables in others."""
    part_descriptions.write()
    for name, text in GENERATED.items():
        (DOCS / name).write_text(text(), encoding="utf-8")
    for name in TABLES:
        (DOCS / name).write_text(with_table(name), encoding="utf-8")


def with_table(name: str) -> str:
    """Return the text of a page with its table made again."""
    from lddr.cli import main

    title, command = TABLES[name]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        main(command)
    marked = re.compile(rf"(<!-- {title} -->\n).*?(<!-- /{title} -->)", re.DOTALL)
    text = (DOCS / name).read_text(encoding="utf-8")
    return marked.sub(lambda found: f"{found[1]}{printed.getvalue().strip()}\n{found[2]}", text)


def stage(folder: Path = STAGED) -> None:
    """Write every page of the site, with its links, and copy the files that pages need."""
    shutil.rmtree(folder, ignore_errors=True)
    for source in DOCS.rglob("*"):
        if source.is_file() and source.suffix not in (".md", ".ipynb"):
            _copy(source, folder)
    for page in pages():
        text = page.read_text(encoding="utf-8")
        target = folder / place(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(
            _relinked(notebook_page.text(text) if page.suffix == ".ipynb" else text, page, folder), "utf-8"
        )


def pages() -> list[Path]:
    """Return the files that become pages: those of docs/ and results/, and those elsewhere but the README."""
    elsewhere = [ROOT / name for name in ELSEWHERE if name != "README.md" and (ROOT / name).exists()]
    return sorted({*DOCS.glob("*.md"), *ROOT.glob("results/**/*.md"), *elsewhere})


def place(path: Path) -> str:
    """Return where a file of the repository is in the site."""
    name = path.relative_to(ROOT).as_posix()
    return ELSEWHERE.get(name) or name.removeprefix("docs/")


def _relinked(text: str, page: Path, folder: Path) -> str:
    here, known = PurePosixPath(place(page)).parent, {*pages(), ROOT / "README.md"}

    def relinked(found: re.Match[str]) -> str:
        image, label, link, anchor = found.groups()
        path = Path(os.path.normpath(page.parent / link))
        if path.is_dir():
            return label
        if path == page or (path.is_file() and path not in known):
            _copy(path, folder)
            target = path.relative_to(ROOT).as_posix().removeprefix("docs/")
        else:
            target = place(path)
        return f"{image}[{label}]({os.path.relpath(target, here)}{anchor or ''})"

    parts = _FENCED.split(text)
    return "".join(part if number % 2 else _LINK.sub(relinked, part) for number, part in enumerate(parts))


def _copy(source: Path, folder: Path) -> None:
    target = folder / source.relative_to(ROOT).as_posix().removeprefix("docs/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def finish(site: Path = SITE) -> None:
    """Write the index of the search as a script, too, because pages opened from disk cannot fetch it."""
    index = site / "search" / "search_index.json"
    if index.exists():  # of MkDocs
        index.with_suffix(".js").write_text(f"var __index = {index.read_text('utf-8')}", encoding="utf-8")


if __name__ == "__main__":
    {"pages": write_pages, "stage": stage, "finish": finish}[sys.argv[1]](*map(Path, sys.argv[2:]))
