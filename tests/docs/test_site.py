"""The site is built as `make docs` does, and shows itself without a network."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

import lddr
from tools import website

ROOT = Path(__file__).parents[2]
NEEDED = re.compile(r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(https?:)?//|<link[^>]*\shref=["']?(https?:)?//""")
pytestmark = pytest.mark.xdist_group("site")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    website.stage()
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    surroundings = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(words, cwd=ROOT, env=surroundings, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    website.finish(folder)
    return folder


@pytest.mark.parametrize("page", website.GENERATED)
def test_the_pages_made_from_the_code_are_current(page):
    assert website.GENERATED[page]() == (ROOT / "docs" / page).read_text(encoding="utf-8"), "run: make pages"


def test_no_page_needs_a_file_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        assert not NEEDED.search(page.read_text()), page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"@import|url\(['\"]?(https?:)?//", sheet.read_text()), sheet.name


def test_every_link_within_it_leads_somewhere(site):
    for page in site.rglob("*.html"):
        for address in re.findall(r'(?:href|src)="([^"#?:]+)[^":]*"', page.read_text()):
            if page.name != "404.html":  # which a server shows, from its top
                assert (page.parent / unquote(address)).exists(), f"{page.name}: {address}"


@pytest.mark.parametrize("page", website.TABLES)
def test_the_tables_made_from_the_code_are_current(page):
    assert website.with_table(page) == (ROOT / "docs" / page).read_text(encoding="utf-8"), "run: make pages"


def test_the_references_have_every_command_and_public_name():
    commands, names = ((ROOT / "docs" / page).read_text() for page in ("commands.md", "api.md"))
    assert all(f"## `{command}`\n" in commands for command in ("lddr train", "lddr runs ls", "lddr bench models"))
    assert "--num-latents INT" in commands
    assert all(f"### `lddr.{name}`\n" in names for name in lddr._HOMES)
    assert "### `lddr.metrics.mig`\n" in names


def test_files_outside_docs_are_pages_or_copies(site):
    assert "python -m benchmarks data" in (site / "benchmarks.html").read_text()
    assert 'href="benchmarks.html"' in (site / "which-model.html").read_text()
    assert (site / "tests" / "stranger" / "parts.py").exists()
    assert "latent_spaces" in (site / "tutorial.html").read_text()  # the notebook's code
    assert (site / "tutorial.ipynb").exists()


def test_it_opens_from_disk_with_its_search(site, visit):
    opened = visit(site / "index.html")
    ready = "() => document.querySelector('.md-search-result__meta').textContent.includes('Type to')"
    opened.page.click(".md-search__input")
    opened.page.wait_for_function(ready)
    opened.page.keyboard.type("gumbel")
    opened.page.wait_for_selector(".md-search-result__item")
    assert opened.left == []
    assert opened.said == []


CUT = """() => [...document.querySelectorAll(".md-content pre code, .md-content table")]
    .filter(each => each.scrollWidth > each.clientWidth + 2).map(each => each.innerText.slice(0, 60))"""


def test_no_table_or_code_is_cut_on_a_laptop(site, visit):
    opened = visit(site / "index.html", width=1280)
    for page in (
        "index",
        "tutorial",
        "parity",
        "results",
        "discrete-latents",
        "benchmarks",
        "commands",
        "api",
        "settings",
    ):
        opened.page.goto((site / f"{page}.html").as_uri())
        assert opened.page.evaluate(CUT) == [], page
