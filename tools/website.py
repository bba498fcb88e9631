"""What mkdocs.yml calls while the site is built: pages made from code, from the notebook and from files outside docs/.

A link of any page may lead to any file of the repository, as it does on disk: what is a page of the site is linked as
one, other files are copied, and a link to a folder becomes its text.
"""

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

import commands_page
import notebook_page
import python_page
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
# files elsewhere that are pages of the site
ADOPTED = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "docs/tutorial.ipynb": "tutorial.md",
    "results/README.md": "results.md",
}
MADE = {"api.md": python_page.text, "commands.md": commands_page.text}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")
_FENCED = re.compile(r"^(```.*?^```[ \t]*$)", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:
    """Leave out of the navigation what is not there, and add the pages that it does not name to the guides."""
    config.nav = [_present(entry) for entry in config.nav]
    named = set(re.findall(r"[\w-]+\.md", str(config.nav)))
    guides = next(section["Guides"] for section in config.nav if "Guides" in section)
    guides += sorted({path.name for path in Path(config.docs_dir).glob("*.md")} - named)
    return config


def _present(entry: Any) -> Any:
    if isinstance(entry, dict):
        return {title: _present(inner) for title, inner in entry.items()}
    return [inner for inner in entry if _is_there(inner)]


def _is_there(entry: Any) -> bool:
    page = next(iter(entry.values())) if isinstance(entry, dict) else entry
    return page in MADE or _origin(page).exists()


def _origin(uri: str) -> Path:
    """The file that a page is made from."""
    own = ROOT / "docs" / uri
    adopted = (ROOT / origin for origin, page in ADOPTED.items() if page == uri and not own.exists())
    return next(adopted, own if own.exists() else ROOT / uri)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made or from elsewhere, then every other file that a page links to."""
    for uri, make in MADE.items():
        files.append(File.generated(config, uri, content=make()))
    results = [path for path in ROOT.glob("results/**/*.md") if path.relative_to(ROOT).as_posix() not in ADOPTED]
    elsewhere = [ROOT / origin for origin in ADOPTED if (ROOT / origin).exists() and origin != "README.md"]
    for path in [*elsewhere, *results]:
        text = path.read_text(encoding="utf-8")
        content = notebook_page.text(text) if path.suffix == ".ipynb" else text
        files.append(File.generated(config, _place(path), content=content))
    for file in list(files.documentation_pages()):
        for path in _leading_out(file):
            if path.is_file() and files.get_file_from_path(_place(path)) is None:
                files.append(File.generated(config, _place(path), abs_src_path=str(path)))
    return files


def _leading_out(file: Any) -> list[Path]:
    here = _origin(file.src_uri).parent
    parts = _FENCED.split(file.content_string)[::2]
    return [_target(here, found[3]) for part in parts for found in _LINK.finditer(part)]


def _target(here: Path, link: str) -> Path:
    return Path(os.path.normpath(here / link))


def _place(path: Path) -> str:
    """Where a file of the repository is in the site."""
    name = path.relative_to(ROOT).as_posix()
    return ADOPTED.get(name) or name.removeprefix("docs/")


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """Turn links, which are right on disk, into links that are right in the site; code stays as it is."""
    if page.file.src_uri in MADE:
        return markdown
    origin, folder = _origin(page.file.src_uri), PurePosixPath(page.file.src_uri).parent

    def relinked(found: re.Match[str]) -> str:
        image, label, link, place = found.groups()
        path = _target(origin.parent, link)
        if path.is_dir():
            return label
        if path == origin:  # the notebook behind this page
            return found[0]
        return f"{image}[{label}]({os.path.relpath(_place(path), folder)}{place or ''})"

    parts = _FENCED.split(markdown)
    return "".join(part if number % 2 else _LINK.sub(relinked, part) for number, part in enumerate(parts))


def on_post_build(config: Any) -> None:
    """Let pages that are opened from disk find the index of the search, which they may not fetch."""
    index = Path(config.site_dir) / "search" / "search_index.json"
    index.with_suffix(".js").write_text(f"var __index = {index.read_text(encoding='utf-8')}", encoding="utf-8")
