import pytest

from lddr.errors import UserError
from lddr.report.traversals import LoadedRun
from lddr.trained import Trained
from tests.report.grouped import invented


def test_a_model_or_images_that_are_gone_are_a_sentence():
    with pytest.raises(UserError, match=r"there is no model .*circles-dvae"):
        _ = LoadedRun(invented()).model
    with pytest.raises(UserError, match="circles-dvae is no run"):
        _ = LoadedRun(invented()).dataset


def test_model_and_images_are_loaded_once(hardly_trained, monkeypatch):
    loads, load = [], Trained.load
    monkeypatch.setattr(Trained, "load", lambda folder: loads.append(folder) or load(folder))
    loaded = LoadedRun(hardly_trained["vae"].run)
    assert loaded.model is loaded.model
    assert loaded.dataset is loaded.dataset
    assert len(loads) == 1
