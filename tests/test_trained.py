import numpy as np
import pytest
import torch

import lddr
from lddr.bench.launch import Launches
from lddr.config import changed, configure
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.runs.carry_out import Machine, run
from lddr.runs.folder import FORMAT, RunFolder
from lddr.training.checkpoint import module_tensors, save_model

QUIET = Machine(device="cpu", threads=1, quiet=True)
SETTINGS = {"preset": "quick", "resolution": 16, "width": 4, "steps": 20, "machine": QUIET}


@pytest.fixture(scope="module", params=["vae", "dvae"])
def model(request):
    return lddr.train("circles", request.param, **SETTINGS)


@pytest.fixture(scope="module")
def images():
    return load_dataset("circles", 16).images(np.arange(0, 1600, 160))


def test_codes_and_images_have_the_promised_shapes(model, images):
    assert model.represent(images).shape == (10, 2)
    assert model.reconstruct(images).shape == images.shape
    assert model.decode(np.zeros((3, 2))).shape == (3, 16, 16, 1)
    pictures = model.traverse(images[0], 1)
    assert pictures.shape == (64 if model.is_discrete else 10, 16, 16, 1)
    assert pictures.min() >= 0
    assert pictures.max() <= 1


def test_floats_bytes_and_greys_are_the_same_images(model, images):
    expected = model.represent(images)
    assert np.allclose(model.represent(images / 255), expected, atol=1e-5)
    assert np.allclose(model.represent(images[..., 0]), expected)


def test_large_arrays_go_through_in_chunks(model, images):
    many = np.tile(images, (60, 1, 1, 1))
    assert np.allclose(model.represent(many), np.tile(model.represent(images), (60, 1)), atol=1e-5)


def test_a_traversal_moves_one_latent_and_leaves_the_others(model, images):
    codes = np.repeat(model.represent(images[:1]), len(model.values_of(0)), axis=0)
    codes[:, 0] = model.values_of(0)
    assert np.allclose(model.traverse(images[0], 0), model.decode(codes))


def test_saved_and_loaded_is_the_same(model, images, tmp_path):
    model.save(tmp_path / "copy")
    loaded = lddr.Trained.load(tmp_path / "copy")
    assert np.array_equal(loaded.represent(images), model.represent(images))
    assert np.array_equal(loaded.decode(np.ones((2, 2))), model.decode(np.ones((2, 2))))
    assert loaded.config == model.config


def test_categories_and_posteriors_of_a_discrete_model(images):
    model = lddr.train("circles", "dvae", num_categories=8, **SETTINGS)
    posterior = model.posterior(images)
    assert posterior.shape == (10, 2, 8)
    assert np.allclose(posterior.sum(axis=2), 1, atol=1e-5)
    assert np.array_equal(model.categories(images), posterior.argmax(axis=2))
    assert np.allclose(posterior @ np.linspace(-1, 1, 8), model.represent(images), atol=1e-5)
    categories = np.array([[0, 7], [3, 3]])
    assert np.allclose(model.decode(categories), model.decode(np.linspace(-1, 1, 8)[categories]))
    with pytest.raises(UserError, match="categories go from 0 to 7"):
        model.decode(np.array([[0, 8]]))


CIRCLES = load_dataset("circles", 16)
X = CIRCLES.images(np.arange(1600))
Y = CIRCLES.space.factors_of(np.arange(1600)) // 10  # (1600, 2), four values each


def labelled(count, unknown=-1):
    table = np.full((1600, 2), unknown, float)
    chosen = np.random.default_rng(0).permutation(1600)[:count]
    table[chosen] = Y[chosen]
    return table


@pytest.mark.parametrize(
    ("model", "unknown", "loss"), [("dvae", np.nan, "masked"), ("vae", -1, "bce"), ("fsq-ae", -1, "l2")]
)
def test_arrays_with_few_labels_supervise_with_all_of_them(model, unknown, loss, tmp_path, capfd):
    machine = Machine(device="cpu", threads=1)
    table = labelled(60, unknown)
    names = {"column": table[:, 1], "row": np.where(np.arange(1600) % 3 > 0, table[:, 0], unknown)}
    trained = lddr.train(X, model, factors=names, out=tmp_path, **SETTINGS | {"machine": machine, "num_latents": 4})
    assert trained.config.supervision.loss == loss
    assert trained.config.supervision.labels == 60
    assert f"_{loss}=60_" in trained.folder.name
    said = " ".join(capfd.readouterr().err.split())
    assert (
        f"supervised ({loss}) by 54 labelled images of 1,600, 6 more validate; the first latents are tied to:" in said
    )
    assert "column 4 (60 of 1600 known), row 4" in said
    scores = RunFolder(trained.folder).scores["training"]
    assert np.isfinite([scores["validation_risk"], scores["validation_risk_guessing"]]).all()
    assert RunFolder(trained.folder).images["factors"] == {"column": 4, "row": 4}
    if model == "dvae":
        assert len(trained.values_of(0)) == 4


def test_few_labels_are_learned(tmp_path):
    settings = SETTINGS | {"steps": 300, "learning_rate": 3e-3, "num_latents": 2}
    trained = lddr.train(X, "dvae", factors={"x": labelled(200)[:, 1]}, out=tmp_path, **settings)
    scores = RunFolder(trained.folder).scores["training"]
    assert scores["validation_risk"] < 0.7 * scores["validation_risk_guessing"]
    assert (trained.categories(X)[:, 0] // 21 == Y[:, 1]).mean() > 0.8  # categories 0, 21, 42 and 63


def test_labels_that_are_all_known_are_all_used_unless_fewer_are_asked_for():
    few = {"labels": 50} | SETTINGS
    assert lddr.train(X[:300], "vae", factors=Y[:300], **SETTINGS).config.supervision.labels == 300
    assert lddr.train(X, "vae", factors=labelled(100), **few).config.supervision.labels == 50
    assert lddr.train(X, "vae", factors=Y[:, 0], supervision="l2", **few).config.supervision.loss == "l2"
    assert lddr.train(X, "vae", factors=Y, supervision=None, **SETTINGS).config.supervision is None


def test_other_labels_are_another_run(tmp_path):
    names = {
        lddr.train(X, "vae", factors=labelled(count), labels=40, out=tmp_path, **SETTINGS).folder for count in (50, 60)
    }
    assert len(names) == 2


@pytest.mark.parametrize(
    ("images", "factors", "sentence"),
    [
        ("circles", Y, "factors are labels of an array of images; put those of a folder into its factors.csv"),
        (X, Y[:5], r"the factor factor 0 has the shape \(5,\); give one value for each of 1600"),
        (X, np.tile(Y, (1, 2)), "has 4 factors, more than the 2 latents"),
    ],
)
def test_labels_that_do_not_fit_are_a_sentence(images, factors, sentence):
    with pytest.raises(UserError, match=sentence):
        lddr.train(images, "vae", factors=factors, **SETTINGS | {"num_latents": 2})


def test_a_masked_model_traverses_its_active_categories_only():
    settings = SETTINGS | {"num_latents": 4}
    model = lddr.train("circles", "dvae", supervision="masked", labels=10, num_categories=64, **settings)
    assert len(model.values_of(0)) == 40
    assert len(model.values_of(3)) == 64


def test_a_gaussian_model_has_no_categories(images):
    model = lddr.train("circles", "vae", **SETTINGS)
    assert model.posterior(images).shape == (10, 2, 2)
    for call in (lambda: model.categories(images), lambda: model.decode(np.zeros((1, 2), int))):
        with pytest.raises(UserError, match="Gaussian latents have no categories"):
            call()


def test_three_lines_for_your_own_images():
    images = np.random.default_rng(0).integers(256, size=(20, 16, 16, 3), dtype=np.uint8)
    model = lddr.train(images, "dvae", width=4, steps=5, num_latents=3, machine=QUIET)
    codes = model.represent(images)
    assert codes.shape == (20, 3)


def test_a_dataset_is_taken_at_its_own_resolution_whatever_the_preset_says():
    model = lddr.train(load_dataset("circles", 32), "vae", **SETTINGS | {"resolution": None, "steps": 2})
    assert model.config.resolution == 32
    assert model.image_shape == (32, 32, 1)


def test_a_kept_run_is_found_again(tmp_path, images):
    model = lddr.train("circles", "dvae", out=tmp_path, **SETTINGS)
    (folder,) = tmp_path.iterdir()
    assert {"config.json", "log.jsonl", "scores.json", "model.safetensors"} <= {file.name for file in folder.iterdir()}
    assert np.array_equal(lddr.Trained.load(folder).represent(images), model.represent(images))
    assert RunFolder(folder).config == model.config
    config = configure("dvae", "circles", "quick", resolution=16, width=4, steps=20)
    assert run(config, tmp_path, QUIET) == folder


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda model: model.represent(np.zeros((2, 32, 32, 1))), r"expected images of shape \(count, 16, 16, 1\)"),
        (lambda model: model.represent(np.full((2, 16, 16, 1), 7.0)), "floats from 0 to 1"),
        (lambda model: model.decode(np.zeros((2, 5))), r"expected codes of shape \(count, 2\)"),
        (lambda model: model.traverse(np.zeros((16, 16, 1)), 2), "there is no latent 2"),
    ],
)
def test_mistakes_are_sentences(model, call, sentence):
    with pytest.raises(UserError, match=sentence):
        call(model)


def test_a_folder_without_a_model_is_a_sentence(tmp_path):
    with pytest.raises(UserError, match="there is no model"):
        lddr.Trained.load(tmp_path)


def test_a_model_moves_to_a_device_and_stays_what_it_was(model, images):
    expected = model.represent(images)
    assert model.to("cpu") is model
    assert str(model.device) == "cpu"
    assert np.array_equal(model.represent(images), expected)
    with pytest.raises(UserError, match="the device 'nowhere' cannot be used here"):
        model.to("nowhere")


@pytest.mark.parametrize(
    "use",
    [
        lambda model, images: model.represent(images),
        lambda model, images: model.posterior(images),
        lambda model, images: model.decode(np.zeros((3, 2))),
    ],
)
def test_the_networks_run_where_the_model_is(model, images, use, tmp_path):
    model.save(tmp_path)
    elsewhere = lddr.Trained.load(tmp_path).to("meta")  # where nothing has values, so that reading the result fails
    with Launches() as counter, pytest.raises(NotImplementedError, match="meta"):
        use(elsewhere, images)
    assert counter.launches["convolution"] >= 2
    assert sum(counter.copies.values()) == 1
    assert sum(counter.reads.values()) == 1
    assert "convolution" not in counter.on_host


@pytest.mark.parametrize(
    ("changes", "shape"),
    [({"width": 10**6}, (16, 16, 1)), ({"num_latents": 10**9}, (16, 16, 1)), ({}, (16, 16, 10**9)), ({}, (16, 16))],
)
def test_settings_that_claim_more_than_the_file_holds_take_no_memory(tmp_path, changes, shape):
    trained = lddr.train("circles", "vae", **SETTINGS)
    config = changed(trained.config, changes)
    facts = {"format": FORMAT, "settings": config.as_dict(), "image_shape": list(shape)}
    save_model(tmp_path / "model.safetensors", module_tensors("vae", trained.vae), facts)
    with pytest.raises(UserError, match=r"model\.safetensors: .*(does not fit|a model of lddr)"):
        lddr.Trained.load(tmp_path)


def authors_gap(model):
    settings = {"gap": {"variant": "authors", "batches": 2}, "mig": {"samples": 100}}
    entries = lddr.evaluate(load_dataset("circles", 16), model, "gap,mig", settings=settings, jobs=1, quiet=True)
    assert entries["mig"]["score"] is not None
    return entries["gap"]


@pytest.mark.filterwarnings("ignore::lddr.metrics.signature.FewSamplesWarning")
def test_a_model_that_was_kept_nowhere_has_its_discriminator_all_the_same(tmp_path):
    kept = lddr.train("circles", "factor-dvae", out=tmp_path, **SETTINGS)
    model = lddr.train("circles", "factor-dvae", **SETTINGS)
    assert model.folder is None
    assert "from" not in repr(model)
    for one, other in zip(model.adversary().network.parameters(), kept.adversary().network.parameters(), strict=True):
        assert torch.equal(one, other)
    assert authors_gap(model)["score"] == authors_gap(kept)["score"] > 0


@pytest.mark.filterwarnings("ignore::lddr.metrics.signature.FewSamplesWarning")
def test_a_metric_that_lacks_the_discriminator_does_not_take_the_others_with_it(tmp_path):
    lddr.train("circles", "factor-dvae", **SETTINGS).save(tmp_path)
    entry = authors_gap(lddr.Trained.load(tmp_path))
    assert entry["score"] is None
    assert entry["reason"] == "this model was saved without its discriminator; load it from the folder of its run"
