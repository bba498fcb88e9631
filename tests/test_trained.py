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
