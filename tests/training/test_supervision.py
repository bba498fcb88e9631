import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lddr.data.factors import Factor, FactorGrid
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.latents.categorical import Categorical
from lddr.latents.family import latents
from lddr.latents.gaussian import Gaussian
from lddr.latents.targets import active_values, bins, normalised
from lddr.networks.latent_layer import LatentLayer
from lddr.training.supervision import Supervision


@given(st.integers(2, 64), st.integers(2, 64))
def test_factor_values_go_to_distinct_categories_at_even_distances(size, categories):
    space = FactorGrid((Factor("a", size),))
    found = bins(np.arange(size)[:, np.newaxis], space, categories)[:, 0].numpy()
    assert found[0] == 0
    assert found[-1] == categories - 1
    assert np.all(np.diff(found) >= (1 if size <= categories else 0))
    assert np.abs(np.diff(found) - (categories - 1) / (size - 1)).max() <= 1


def test_the_papers_active_categories():
    space = FactorGrid((Factor("size", 2), Factor("height", 3), Factor("object", 183), Factor("full", 64)))
    active = active_values(space, 6, 64)
    assert active.sum(1).tolist() == [2, 3, 64, 64, 64, 64]
    assert active[0].nonzero().flatten().tolist() == [0, 63]
    assert active[1].nonzero().flatten().tolist() == [0, 32, 63]  # round(31.5) = 32
    for column, size in enumerate(space.sizes):
        labels = bins(np.tile(np.arange(size)[:, np.newaxis], (1, 4)), space, 64)[:, column]
        assert active[column, labels].all()


def test_labels_are_drawn_once_by_their_own_seed_and_split():
    dataset = load_dataset("dsprites")
    train, validation = Supervision("bce", labels=105).split(dataset)
    assert (len(train), len(validation)) == (95, 10)  # 94.5 is rounded up
    again, _ = Supervision("bce", labels=105, omega=9).split(dataset)
    assert np.array_equal(train, again)
    other, _ = Supervision("bce", labels=105, label_seed=1).split(dataset)
    assert not np.array_equal(train, other)


SPACE = FactorGrid((Factor("a", 3), Factor("b", 5)))
FACTORS = np.array([[0, 4], [2, 1], [1, 0]])


@pytest.mark.parametrize("loss", ["bce", "l2"])
def test_gaussian_risk_by_hand(loss):
    family = Gaussian(num_latents=3)
    latent = LatentLayer(family)(torch.randn(3, 6, generator=torch.Generator().manual_seed(0)))
    targets = FACTORS / np.array([2, 4])
    assert np.allclose(normalised(FACTORS, SPACE), targets)
    means = latent.mean[:, :2].numpy()
    if loss == "l2":
        expected = ((means - targets) ** 2).sum(1).mean()
    else:
        guess = 1 / (1 + np.exp(-means))
        expected = -(targets * np.log(guess) + (1 - targets) * np.log(1 - guess)).sum(1).mean()
    assert np.isclose(float(family.risk(loss, latent, family.targets(loss, FACTORS, SPACE))), expected, rtol=1e-5)


@pytest.mark.parametrize("loss", ["cross-entropy", "masked"])
def test_categorical_risk_by_hand(loss):
    layer = LatentLayer(Categorical(num_latents=3, num_categories=9))
    layer.tie(loss, SPACE)
    assert (layer.mask is None) == (loss == "cross-entropy")
    latent = layer(torch.randn(3, 27, generator=torch.Generator().manual_seed(0)).requires_grad_())
    chosen = np.rint(FACTORS * 8 / np.array([2, 4])).astype(int)
    table = latent.parameters.detach()
    expected = -np.mean([sum(float(table[n, i, chosen[n, i]]) for i in range(2)) for n in range(3)])
    risk = layer.family.risk(loss, latent, layer.family.targets(loss, FACTORS, SPACE))
    assert np.isclose(risk.item(), expected, rtol=1e-5)
    risk.backward()


def test_the_third_latent_is_neither_supervised_nor_masked():
    layer = LatentLayer(Categorical(num_latents=3, num_categories=9))
    layer.tie("masked", SPACE)
    outputs = torch.randn(3, 27, generator=torch.Generator().manual_seed(0)).requires_grad_()
    targets = layer.family.targets("masked", FACTORS, SPACE)
    layer.family.risk("masked", layer(outputs), targets).backward()
    slopes = outputs.grad.unflatten(1, (3, 9))
    assert (slopes[:, 2] == 0).all()
    assert (slopes[:, :2] != 0).any()
    assert layer.active[2].all()


@pytest.mark.parametrize(
    ("loss", "latent", "num_latents", "dataset", "sentence"),
    [
        ("bce", "categorical", 10, "dsprites", "not for categorical latents; choose one of: cross-entropy, masked"),
        ("masked", "gaussian", 10, "dsprites", "not for gaussian latents; choose one of: bce, l2"),
        ("bce", "gaussian", 4, "dsprites", "dsprites has 5 factors, more than the 4 latents"),
    ],
)
def test_mistakes_are_sentences(loss, latent, num_latents, dataset, sentence):
    with pytest.raises(UserError, match=sentence):
        family = latents[latent](num_latents=num_latents)
        Supervision(loss).check(family)
        Supervision(loss).check_dataset(family, load_dataset(dataset))


def test_images_without_factors_cannot_supervise():
    from lddr.data.in_memory import ArrayDataset

    with pytest.raises(UserError, match="has no factors to supervise with"):
        Supervision("bce").check_dataset(Gaussian(), ArrayDataset(np.zeros((4, 16, 16), np.uint8)))


def test_more_labels_than_images_are_a_sentence():
    with pytest.raises(UserError, match="2000 labels are more than the 1600 images of circles"):
        Supervision("bce", labels=2000).check_dataset(Gaussian(), load_dataset("circles", 16))


@pytest.mark.parametrize("size", [27, 53])
def test_ties_go_up_where_floating_point_would_break_them(size):
    found = bins(np.arange(size)[:, np.newaxis], FactorGrid((Factor("a", size),)), 64)[:, 0].tolist()
    from fractions import Fraction

    exact = [int(Fraction(j * 63, size - 1) + Fraction(1, 2)) for j in range(size)]
    assert found == exact
