from pathlib import Path

from lddr.cli.data import markdown_table

ROOT = Path(__file__).parents[1]


def test_the_table_of_datasets_is_that_of_the_registry():
    assert markdown_table() in (ROOT / "README.md").read_text(), "paste the output of: lddr data list --markdown"


def test_the_files_it_links_to_exist():
    import re

    for page in (ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_table_of_settings_is_that_of_the_code():
    from lddr.cli.train import settings_table

    assert settings_table() in (ROOT / "docs" / "settings.md").read_text(), (
        "paste the output of: lddr models --markdown"
    )


def test_the_walks_name_files_that_are_there():
    import re

    text = (ROOT / "docs" / "architecture.md").read_text()
    named = [name for name in re.findall(r"`((?:\w+/)*\w+\.py)`", text) if "NAME" not in name]
    assert len(named) > 20
    for name in named:
        assert (ROOT / "src" / "lddr" / name).exists(), name
