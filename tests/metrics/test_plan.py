import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lddr.data.factors import Factor, FactorGrid, FactorTable
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.metrics.evaluate import encode_images, plan_samples, scorable
from lddr.metrics.metric import EncodedImages, choose_metrics

CIRCLES = load_dataset("circles", 16)
SMALL = {"mig": {"samples": 50}, "sap": {"train": 40, "test": 20}}


def means(images):
    return np.stack([images.mean((1, 2, 3)), images[:, :8].mean((1, 2, 3))], axis=1)


def test_all_metrics_are_planned_and_each_distinct_image_is_encoded_once():
    plan = plan_samples(CIRCLES.space, choose_metrics(["mig", "sap"], SMALL), seed=0)
    seen = []

    def represent(images):
        seen.append(len(images))
        return means(images)

    table = encode_images(CIRCLES, CIRCLES.space, plan.images, represent, seed=0)
    numbers = np.concatenate([part.ravel() for draws in plan.draws.values() for part in draws.values()])
    assert plan.drawn == len(numbers) == 110
    assert sum(seen) == len(plan.images) == len(set(numbers.tolist()))
    sample = table.samples(plan.draws["mig"])["samples"]
    assert np.allclose(sample.codes, means(CIRCLES.images(sample.indices)), atol=1e-6)
    assert np.array_equal(sample.factors, CIRCLES.space.factors_of(sample.indices))
    assert np.array_equal(sample[3:7].codes, sample.codes[3:7])


def test_a_metric_draws_the_same_in_any_company():
    alone = plan_samples(CIRCLES.space, choose_metrics(["mig"], {"mig": {"samples": 50}}), seed=3)
    together = plan_samples(CIRCLES.space, choose_metrics(["sap", "mig"], SMALL), seed=3)
    assert np.array_equal(alone.draws["mig"]["samples"], together.draws["mig"]["samples"])
    other = plan_samples(CIRCLES.space, choose_metrics(["mig"], {"mig": {"samples": 50}}), seed=4)
    assert not np.array_equal(alone.draws["mig"]["samples"], other.draws["mig"]["samples"])


def test_the_whole_of_a_small_dataset_is_encoded_once_for_any_number_of_draws():
    plan = plan_samples(CIRCLES.space, choose_metrics(["beta_vae", "factor_vae", "mig"]), seed=0)
    assert plan.drawn > 2_800_000
    assert np.array_equal(plan.images, np.arange(1600))


@pytest.mark.parametrize("name", ["color_dsprites", "noisy_dsprites"])
def test_the_chance_in_an_image_depends_on_its_number_and_the_seed_alone(name):
    dataset = load_dataset(name, 32)
    some = np.array([5, 17, 18, 40_000, 737_279])
    more = np.union1d(some, np.arange(0, 737_280, 7001))

    def pixels(images, seed):
        found = encode_images(dataset, dataset.space, images, lambda batch: batch.reshape(len(batch), -1), seed)
        return found.codes_of(some)

    assert np.array_equal(pixels(some, 0), pixels(more, 0))
    assert not np.array_equal(pixels(some, 0), pixels(some, 1))


@given(st.integers(1, 60), st.integers(0, 2**32))
def test_codes_are_found_whether_by_table_or_by_search(count, seed):
    generator = np.random.default_rng(seed)
    space = FactorGrid((Factor("a", 100),))
    images = np.unique(generator.integers(100, size=count))
    codes = generator.normal(size=(len(images), 3)).astype(np.float32)
    wanted = generator.choice(images, size=(4, 2))
    direct = EncodedImages(space, images, codes)
    searched = EncodedImages(space, images, codes)
    searched._rows = None
    assert np.array_equal(direct.codes_of(wanted), searched.codes_of(wanted))
    assert np.array_equal(direct.codes_of(wanted)[1, 1], codes[images.tolist().index(wanted[1, 1])])


def represents(shape, value=0.0):
    return lambda images: np.full((len(images), *shape) if shape else (3, 2), value)


@pytest.mark.parametrize(
    ("represent", "message"),
    [
        (represents((2, 2)), "must give codes of shape"),
        (represents(None), "must give codes of shape"),
        (represents((2,), np.nan), "NaN or infinite"),
        (lambda images: np.zeros((len(images), len(images))), "latents for one batch"),
    ],
)
def test_codes_of_the_wrong_kind_are_refused_in_a_sentence(represent, message):
    with pytest.raises(UserError, match=message):
        encode_images(CIRCLES, CIRCLES.space, np.arange(700), represent, 0)


def test_continuous_factors_are_left_out_with_the_reason_or_binned():
    generator = np.random.default_rng(0)
    angles = generator.uniform(size=100)
    ranks = np.argsort(np.argsort(angles))
    values = tuple(sorted(angles.tolist()))
    colours = generator.integers(3, size=100)
    table = FactorTable((Factor("angle", 100, values), Factor("colour", 3)), np.stack([ranks, colours], axis=1))
    space, left_out = scorable(table)
    assert space.names == ("colour",)
    assert "100 different numbers in 100 images" in left_out["angle"]
    binned, nothing = scorable(table, bins=4)
    assert not nothing
    assert binned.sizes == (4, 3)
    edges = np.linspace(angles.min(), angles.max(), 5)
    assert np.array_equal(binned.factors_of(np.arange(100))[:, 0], np.searchsorted(edges[1:-1], angles, side="right"))


PARTIAL = FactorTable(
    CIRCLES.space.factors,
    np.where(np.random.default_rng(0).random((1600, 2)) < 0.5, CIRCLES.space.factors_of(np.arange(1600)), -1),
)


def test_metrics_that_need_factors_look_at_labelled_images_only():
    names = ["mig", "sap", "beta_vae", "irs", "unsupervised"]
    settings = {"beta_vae": {"train_points": 60, "test_points": 30, "pairs": 4}, "irs": {"samples": 500}}
    plan = plan_samples(PARTIAL, choose_metrics(names, settings), seed=0)
    whole = PARTIAL.fully_labelled()
    assert 300 < len(whole) < 500
    assert not plan.undefined
    for name in names[:4]:
        drawn = np.concatenate([numbers.ravel() for numbers in plan.draws[name].values()])
        assert np.isin(drawn, whole).all()
        assert (PARTIAL.factors_of(drawn) >= 0).all()
    for name in ("mig", "sap"):  # each labelled image once, none to train and to test
        drawn = np.concatenate(list(plan.draws[name].values()))
        assert np.array_equal(np.sort(drawn), whole)
    assert len(np.unique(plan.draws["unsupervised"]["samples"])) > len(whole)
    for part, numbers in plan.draws["irs"].items():  # with the factor held as it is asked for
        held = PARTIAL.factors_of(numbers)[:, int(part.removeprefix("factor "))]
        assert len(np.unique(held)) == 40


def test_images_that_are_all_labelled_are_drawn_as_before():
    table = FactorTable(CIRCLES.space.factors, CIRCLES.space.factors_of(np.arange(1600)))
    one, other = (
        plan_samples(space, choose_metrics(["mig", "sap"], SMALL), seed=0) for space in (table, CIRCLES.space)
    )
    assert all(
        np.array_equal(one.draws[name][part], other.draws[name][part]) for name in SMALL for part in one.draws[name]
    )


def test_without_an_image_that_has_all_factors_there_is_a_reason():
    rows = np.array([[0, -1], [1, -1], [-1, 0], [-1, 1]])
    plan = plan_samples(
        FactorTable((Factor("a", 2), Factor("b", 2)), rows), choose_metrics(["mig", "beta_vae", "unsupervised"]), 0
    )
    assert plan.undefined == dict.fromkeys(["mig", "beta_vae"], "no image has all of its factors labelled: a, b")


def test_unknown_values_stay_unknown_in_bins_and_do_not_make_a_factor_continuous():
    angles = np.random.default_rng(0).uniform(size=20)
    rows = np.full((100, 2), -1)
    rows[30:50, 0], rows[:60, 1] = np.argsort(np.argsort(angles)), np.arange(60) % 30
    factors = Factor("angle", 20, tuple(sorted(angles.tolist()))), Factor("x", 30, tuple(range(30)))
    space, left_out = scorable(FactorTable(factors, rows))
    assert "20 different numbers in 20 images" in left_out["angle"]
    assert space.rows.tolist() == rows[:, 1:].tolist()
    binned, _ = scorable(FactorTable(factors, rows), bins=4)
    assert np.array_equal(binned.known, rows >= 0)
    edges = np.linspace(angles.min(), angles.max(), 5)
    assert np.array_equal(binned.rows[30:50, 0], np.searchsorted(edges[1:-1], angles, side="right"))


def test_words_and_grids_are_never_continuous():
    table = FactorTable((Factor("name", 3, ("a", "b", "c")),), np.arange(3)[:, None])
    assert scorable(table)[0].names == ("name",)
    assert scorable(CIRCLES.space) == (CIRCLES.space, {})
