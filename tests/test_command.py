from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lddr.cli import main
from lddr.config import changed, configure, train_words
from lddr.models import models


@pytest.fixture
def parsed(monkeypatch):
    """A function from words to the settings that the command line makes of them."""
    seen = []
    monkeypatch.setattr("lddr.runs.run.run", lambda config, out, machine, images=None: seen.append(config))

    def parse(words):
        assert words[0] == "lddr"
        main(words[1:])
        return seen.pop()

    return parse


@pytest.mark.parametrize("model", list(models))
@pytest.mark.parametrize(
    ("preset", "dataset"),
    [
        ("paper", "dsprites"),
        ("quick", "my images/of cars"),
        *(pytest.param(*case, marks=pytest.mark.long) for case in product(["paper", "quick"], ["circles", "shapes3d"])),
    ],
)
def test_the_command_of_a_run_makes_the_same_run(parsed, model, preset, dataset):
    config = configure(model, dataset, preset)
    assert parsed(train_words(config)) == config


@settings(deadline=None, max_examples=10)
@given(
    number=st.floats(1e-8, 1e8),
    seed=st.integers(0, 2**60),
    resolution=st.sampled_from([None, 16, 64]),
    preset=st.sampled_from(["paper", "quick"]),
    loss=st.sampled_from([None, "cross-entropy", "masked"]),
)
def test_every_digit_and_every_setting_is_said(number, seed, resolution, preset, loss):
    config = configure(
        "factor-dvae", "dsprites", preset, supervision=loss, gamma=number, seed=seed, kernels=(4, 4, 2, 2)
    )
    config = replace(config, resolution=resolution)
    if loss:
        config = changed(config, {"omega": number, "labels": 7, "validation_share": 0.25})
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lddr.runs.run.run", lambda config, out, machine, images=None: seen.append(config))
        main(train_words(config)[1:])
    assert seen == [config]
    assert seen[0].fingerprint == config.fingerprint


def test_the_number_of_labels_of_own_images_is_said_even_if_it_is_the_default():
    own = configure("dvae", "my/pictures", supervision="masked")
    assert train_words(own)[-2:] == ["--labels", "100"]
    assert "--labels" not in train_words(configure("dvae", "circles", supervision="masked"))


def test_what_is_said_elsewhere_can_be_left_out():
    words = train_words(configure("dvae", "circles", "quick", seed=7), without=("seed",))
    assert words == ["lddr", "train", "--model", "dvae", "--dataset", "circles", "--preset", "quick"]
