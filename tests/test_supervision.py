from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lddr.data.factors import Factor, FactorGrid, FactorTable
from lddr.data.in_memory import ArrayDataset
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.latents import latents
from lddr.latents.categorical import Categorical
from lddr.latents.gaussian import Gaussian
from lddr.latents.latent import active_values, bins, normalised, usual_supervision
from lddr.supervision import Supervision


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
    latent = Gaussian(num_latents=3)
    posterior = latent(torch.randn(3, 6, generator=torch.Generator().manual_seed(0)))
    targets = FACTORS / np.array([2, 4])
    assert np.allclose(normalised(FACTORS, SPACE), targets)
    means = posterior.mean[:, :2].numpy()
    if loss == "l2":
        expected = ((means - targets) ** 2).sum(1).mean()
    else:
        guess = 1 / (1 + np.exp(-means))
        expected = -(targets * np.log(guess) + (1 - targets) * np.log(1 - guess)).sum(1).mean()
    assert np.isclose(float(latent.risk(loss, posterior, latent.targets(loss, FACTORS, SPACE))), expected, rtol=1e-5)


@pytest.mark.parametrize("loss", ["cross-entropy", "masked"])
def test_categorical_risk_by_hand(loss):
    latent = Categorical(num_latents=3, num_categories=9)
    latent.mask_to_factors(loss, SPACE)
    assert (latent.mask is None) == (loss == "cross-entropy")
    posterior = latent(torch.randn(3, 27, generator=torch.Generator().manual_seed(0)).requires_grad_())
    chosen = np.rint(FACTORS * 8 / np.array([2, 4])).astype(int)
    table = posterior.parameters.detach().log()
    expected = -np.mean([sum(float(table[n, i, chosen[n, i]]) for i in range(2)) for n in range(3)])
    risk = latent.risk(loss, posterior, latent.targets(loss, FACTORS, SPACE))
    assert np.isclose(risk.item(), expected, rtol=1e-5)
    risk.backward()


def test_the_third_latent_is_neither_supervised_nor_masked():
    latent = Categorical(num_latents=3, num_categories=9)
    latent.mask_to_factors("masked", SPACE)
    outputs = torch.randn(3, 27, generator=torch.Generator().manual_seed(0)).requires_grad_()
    targets = latent.targets("masked", FACTORS, SPACE)
    latent.risk("masked", latent(outputs), targets).backward()
    slopes = outputs.grad.unflatten(1, (3, 9))
    assert (slopes[:, 2] == 0).all()
    assert (slopes[:, :2] != 0).any()
    assert latent.active[2].all()


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
        choice = latents[latent](num_latents=num_latents)
        Supervision(loss).check(choice)
        Supervision(loss).check_dataset(choice, load_dataset(dataset))


def test_images_without_factors_cannot_supervise():
    with pytest.raises(UserError, match="has no factors to supervise with"):
        Supervision("bce").check_dataset(latents["gaussian"](), ArrayDataset(np.zeros((4, 16, 16), np.uint8)))


def test_more_labels_than_images_are_a_sentence():
    with pytest.raises(UserError, match="2000 labels are more than the 1600 images of circles"):
        Supervision("bce", labels=2000).check_dataset(latents["gaussian"](), load_dataset("circles", 16))


def labelled_in_part(rows, factors=SPACE.factors):
    return ArrayDataset(
        np.arange(len(rows), dtype=np.uint8)[:, None, None] * np.ones((16, 16), np.uint8), FactorTable(factors, rows)
    )


ROWS = np.array([[0, 4], [-1, 3], [2, -1], [-1, -1], [1, 0], [-1, -1], [2, 2], [0, -1]])
LABELLED = [0, 1, 2, 4, 6, 7]


def test_of_partly_labelled_images_each_labelled_one_is_drawn_once():
    dataset = labelled_in_part(ROWS)
    train, validation = Supervision("bce", labels=6, validation_share=0.3).split(dataset)
    assert (len(train), len(validation)) == (5, 1)
    assert sorted([*train, *validation]) == LABELLED
    some = np.concatenate(Supervision("bce", labels=3, label_seed=1).split(dataset))
    assert len(set(some.tolist())) == 3
    assert set(some.tolist()) < set(LABELLED)
    with pytest.raises(UserError, match=r"7 labels are more than the 6 labelled images of array-.*; lower labels"):
        Supervision("bce", labels=7).check_dataset(latents["gaussian"](), dataset)


def test_all_images_of_a_labelled_set_are_drawn_once_if_all_are_wanted():
    dataset = load_dataset("circles", 16)
    assert np.array_equal(np.sort(np.concatenate(Supervision("bce", labels=1600).split(dataset))), np.arange(1600))


@pytest.mark.parametrize(("name", "loss"), [(name, loss) for name in latents for loss in latents[name].supervisions])
def test_the_risk_is_of_known_labels_only(name, loss):
    """The sum over the known factors of an image, mean over images; nothing unknown has a gradient."""
    latent = latents[name](num_latents=3).build()
    latent.mask_to_factors(loss, SPACE)
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(len(FACTORS), latent.num_parameters, generator=generator).requires_grad_()
    targets, known = latent.targets(loss, FACTORS, SPACE), torch.tensor([[True, False], [False, True], [True, True]])
    posterior = latent(outputs)
    errors = latent.errors(loss, posterior, targets)
    risk = latent.risk(loss, posterior, targets, known)
    expected = (errors[0, 0] + errors[1, 1] + errors[2, 0] + errors[2, 1]) / 3
    assert risk.item() == pytest.approx(expected.item())
    whole = torch.ones_like(known)
    assert latent.risk(loss, posterior, targets, whole) == latent.risk(loss, posterior, targets) == errors.sum(1).mean()
    (slopes,) = torch.autograd.grad(risk, outputs)
    slopes = slopes.unflatten(1, (3, -1))
    assert (slopes[0, 1] == 0).all()
    assert (slopes[1, 0] == 0).all()
    assert all((slopes[image, factor] != 0).any() for image, factor in ((0, 0), (1, 1), (2, 0), (2, 1)))


def test_the_usual_loss_of_every_latent():
    usual = {"gaussian": "bce", "categorical": "masked", "codebook": "masked", "fsq": "l2", "quantised": "l2"}
    usual |= {"one_hot": "masked", "von_mises": "cosine", "vector_quantised": None}
    assert {name: usual_supervision(latents[name]) for name in latents} == usual


def rows_of(dataset, supervision):
    return (dataset.space.factors_of(images) for images in supervision.split(dataset))


@pytest.mark.parametrize("rows", [np.random.default_rng(0).integers(0, [3, 5], (40, 2)), np.tile(ROWS, (5, 1))])
def test_guessing_categories_is_the_cross_entropy_of_their_frequencies(rows):
    dataset, supervision = labelled_in_part(rows), Supervision("masked", labels=len(rows) - 10, validation_share=0.4)
    train, validation = rows_of(dataset, supervision)
    expected = 0.0
    for factor, size in enumerate(SPACE.sizes):
        counts = 1 + np.array([(train[:, factor] == value).sum() for value in range(size)])
        asked = [value for value in validation[:, factor] if value >= 0]
        expected += sum(-np.log(counts[value] / counts.sum()) for value in asked) / len(validation)
    found = supervision.guessing(Categorical(num_latents=3), dataset)
    assert found == {"validation_risk_guessing": pytest.approx(expected)}


@pytest.mark.parametrize(("latent", "loss"), [("gaussian", "bce"), ("gaussian", "l2"), ("fsq", "l2")])
def test_guessing_numbers_is_the_risk_of_their_mean(latent, loss):
    dataset, supervision = labelled_in_part(np.tile(ROWS, (5, 1))), Supervision(loss, labels=30, validation_share=0.4)
    module = latents[latent](num_latents=3).build()
    train, validation = rows_of(dataset, supervision)
    low, high = (0, 1) if latent == "gaussian" else (module.low, module.high)
    expected = 0.0
    for factor, size in enumerate(SPACE.sizes):
        places = np.linspace(low, high, size)
        mean = np.mean([*places[train[:, factor][train[:, factor] >= 0]], *places])
        asked = places[validation[:, factor][validation[:, factor] >= 0]]
        entropy = -(asked * np.log(mean) + (1 - asked) * np.log(1 - mean)) if loss == "bce" else (asked - mean) ** 2
        expected += entropy.sum() / len(validation)
    found = supervision.guessing(module, dataset)
    assert found == {"validation_risk_guessing": pytest.approx(expected, rel=1e-5)}


def test_a_value_that_no_label_has_shown_is_a_surprise_but_no_infinite_one():
    rows = np.array([[0, 0]] * 9 + [[2, 4]])
    supervision = next(
        each
        for each in (Supervision("masked", labels=10, label_seed=seed) for seed in range(99))
        if each.split(labelled_in_part(rows))[1] == [9]
    )
    expected = np.log(12) + np.log(14)  # 9 labels and one of each value
    found = supervision.guessing(Categorical(num_latents=3), labelled_in_part(rows))
    assert found["validation_risk_guessing"] == pytest.approx(expected)
    assert replace(supervision, validation_share=0.0).guessing(Categorical(num_latents=3), labelled_in_part(rows)) == {}


@pytest.mark.parametrize("size", [27, 53])
def test_ties_go_up_where_floating_point_would_break_them(size):
    found = bins(np.arange(size)[:, np.newaxis], FactorGrid((Factor("a", size),)), 64)[:, 0].tolist()
    from fractions import Fraction

    exact = [int(Fraction(j * 63, size - 1) + Fraction(1, 2)) for j in range(size)]
    assert found == exact
