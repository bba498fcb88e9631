import pytest

from lddr.metrics.metric import UndefinedError
from lddr.report.loaded import LoadedRun
from lddr.trained import Trained
from tests.report.grouped import invented


def test_a_model_or_images_that_are_gone_are_a_sentence():
    with pytest.raises(UndefinedError, match="the model of circles-dvae cannot be loaded: there is no model"):
        _ = LoadedRun(invented()).model
    with pytest.raises(UndefinedError, match="the images of nowhere-dvae are not here: "):
        _ = LoadedRun(invented(dataset="nowhere")).dataset


def test_model_and_images_are_loaded_once(hardly_trained, monkeypatch):
    loads, load = [], Trained.load
    monkeypatch.setattr(Trained, "load", lambda folder: loads.append(folder) or load(folder))
    loaded = LoadedRun(hardly_trained["vae"].run)
    assert loaded.model is loaded.model
    assert loaded.dataset is loaded.dataset
    assert len(loads) == 1
