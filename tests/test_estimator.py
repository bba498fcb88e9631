import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks as checks

from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.estimator import DisentangledVAE
from lddr.runs.run import Machine

QUIET = Machine(device="cpu", threads=1, quiet=True)
SMALL = {"width": 8, "num_latents": 2, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def images():
    return load_dataset("circles", 16).images(np.arange(0, 1600, 4))


@pytest.fixture(scope="module")
def fitted(images):
    return DisentangledVAE("vae", steps=300, settings=SMALL, machine=QUIET).fit(images)


CHECKS = [  # those of scikit-learn that need no table of numbers, which images are not
    checks.check_do_not_raise_errors_in_init_or_set_params,
    checks.check_estimator_cloneable,
    checks.check_estimator_repr,
    checks.check_estimator_tags_renamed,
    checks.check_get_params_invariance,
    checks.check_mixin_order,
    checks.check_no_attributes_set_in_init,
    checks.check_parameters_default_constructible,
    checks.check_set_params,
    checks.check_valid_tag_types,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_checks_of_scikit_learn_that_apply_to_images(check):
    check("DisentangledVAE", DisentangledVAE())


def test_codes_and_images(fitted, images):
    codes = fitted.transform(images)
    assert codes.shape == (400, 2)
    assert fitted.inverse_transform(codes[:3]).shape == (3, 16, 16, 1)
    assert fitted.get_feature_names_out().tolist() == ["latent0", "latent1"]


def test_images_of_any_size_go_in():
    images = np.random.default_rng(0).integers(256, size=(6, 28, 20, 4), dtype=np.uint8)
    estimator = DisentangledVAE("vae", steps=2, settings=SMALL, machine=QUIET).fit(images)
    assert estimator.transform(images).shape == (6, 2)
    assert estimator.inverse_transform(np.zeros((1, 2))).shape == (1, 28, 20, 3)


def test_a_clone_with_the_same_seed_learns_the_same(images):
    one = DisentangledVAE("vae", steps=5, random_state=3, settings=SMALL, machine=QUIET)
    codes = one.fit(images).transform(images)
    assert np.array_equal(clone(one).fit(images).transform(images), codes)
    other = clone(one).set_params(random_state=4).fit(images)
    assert not np.array_equal(other.transform(images), codes)


def test_a_pipeline_learns_from_the_codes(images):
    left = (np.arange(0, 1600, 4) // 40 < 20).astype(int)  # is the disc in the left half?
    pipeline = make_pipeline(DisentangledVAE("vae", steps=300, settings=SMALL, machine=QUIET), LogisticRegression())
    assert pipeline.fit(images, left).score(images, left) > 0.75


def test_labels_supervise_and_may_be_few_or_unused(images):
    x = np.arange(0, 1600, 4) % 40 // 10
    x[100:] = -1
    settings = SMALL | {"steps": 3}
    one, other, alone = (
        DisentangledVAE("dvae", machine=QUIET, settings=settings, **keywords).fit(images, y)
        for keywords, y in (({}, x), ({"supervision": None}, x), ({}, None))
    )
    assert (one.trained_.config.supervision.loss, one.trained_.config.supervision.labels) == ("masked", 100)
    assert len(one.trained_.values_of(0)) == 4
    assert other.trained_.config.supervision is None
    assert np.array_equal(other.transform(images), alone.transform(images))


def test_an_unfitted_one_says_so(images):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        DisentangledVAE().transform(images)


def test_settings_are_keywords_that_survive_cloning_and_can_be_searched_for(images):
    model = DisentangledVAE("vae", steps=2, machine=QUIET, num_latents=3, width=8)
    assert clone(model).get_params()["num_latents"] == 3
    assert clone(model).set_params(num_latents=4, learning_rate=1e-3).fit(images).transform(images).shape[1] == 4
    with pytest.raises(UserError, match="unknown setting 'num_latent'; did you mean 'num_latents'"):
        DisentangledVAE("vae", steps=2, machine=QUIET, num_latent=3).fit(images)
