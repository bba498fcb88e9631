import pytest

from lddr.errors import UserError
from lddr.registry import Registry


def registry_of(*names: str) -> Registry[str]:
    registry: Registry[str] = Registry("fruit", homes=())
    for name in names:
        registry.register(name)(name.upper())
    return registry


def test_things_are_found_by_name_and_listed_in_order():
    fruits = registry_of("pear", "apple")
    assert fruits["pear"] == "PEAR"
    assert list(fruits) == ["apple", "pear"]
    assert "apple" in fruits
    assert len(fruits) == 2


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UserError, match="unknown fruit 'aple'; did you mean 'apple'"):
        registry_of("pear", "apple")["aple"]


def test_a_strange_name_lists_what_there_is_without_a_guess():
    with pytest.raises(UserError, match=r"unknown fruit 'xyz'; Known: apple, pear"):
        registry_of("pear", "apple")["xyz"]


def test_two_things_cannot_share_a_name():
    with pytest.raises(ValueError, match="two fruits are called 'pear'"):
        registry_of("pear", "pear")


def test_the_modules_of_a_home_register_themselves():
    from lddr.data.dataset import datasets

    assert {"circles", "dsprites", "rooms", "mpi3d_toy"} <= set(datasets)


def test_a_retired_name_is_answered_with_its_successor():
    fruits = registry_of("pear")
    fruits.retire("quince", "pear")
    with pytest.raises(UserError, match=r"^the fruit 'quince' is no more; use 'pear' in its place$"):
        fruits["quince"]
    assert "quince" not in fruits


def test_a_registry_that_could_not_be_filled_is_not_taken_for_an_empty_one(tmp_path, monkeypatch):
    (tmp_path / "orchard").mkdir()
    (tmp_path / "orchard" / "pear.py").write_text("import no_such_module_anywhere\n")
    (tmp_path / "orchard" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    fruits: Registry[str] = Registry("fruit", homes=("orchard",))
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere"):
            fruits["pear"]
