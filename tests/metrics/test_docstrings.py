"""The examples in the docstrings of the public functions give the output that they show."""

import doctest

import pytest

import lddr
import lddr.metrics

PUBLIC = {name: thing for name, thing in vars(lddr.metrics).items() if callable(thing)} | {"evaluate": lddr.evaluate}


@pytest.mark.parametrize("name", PUBLIC)
def test_examples(name):
    (test,) = doctest.DocTestFinder(recurse=False).find(PUBLIC[name], name, globs={})
    assert test.examples, "the docstring has no example"
    assert doctest.DocTestRunner().run(test).failed == 0
