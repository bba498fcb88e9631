"""docs/architecture.md: the files it names exist, and its walks are those of the code."""

import re

import pytest

from tools import house

TEXT = house.PAGE.read_text(encoding="utf-8")


def test_the_files_it_names_are_there():
    named = re.findall(r"`((?:\w+/)*\w+\.py)`", TEXT)
    assert len(named) > 20
    for name in named:
        places = (house.SOURCE / "lddr", house.SOURCE, house.ROOT)
        assert any((place / name).exists() for place in places), name


def test_every_walk_is_listed():
    for title in house.WALKS:
        assert f"| {title} |" in TEXT, "run: python tools/house.py --write"


@pytest.mark.long
def test_the_walks_are_those_of_the_code(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    for title, files in house.walks().items():
        row = next(line for line in TEXT.splitlines() if line.startswith(f"| {title} |"))
        assert re.findall(r"`([^`]+)`", row) == [name.removeprefix("lddr/") for name in files], title
