import json

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils import data

import lddr
from benchmarks.launch import Launches
from lddr.cli import main
from lddr.config import changed, configure
from lddr.data.in_memory import ArrayDataset
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.runs.folder import FORMAT, RunFolder
from lddr.runs.run import Machine, run
from lddr.training.checkpoint import module_tensors, save_model

QUIET = Machine(device="cpu", threads=1, quiet=True)
SETTINGS = {"preset": "quick", "resolution": 16, "width": 4, "steps": 5, "batch_size": 32, "machine": QUIET}


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
    all_labels = lddr.train(X[:300], "vae", factors=Y[:300], **SETTINGS).config.supervision
    assert all_labels.labels == 300
    few = lddr.train(X, "vae", factors=labelled(100), labels=50, supervision="l2", **SETTINGS).config.supervision
    assert (few.labels, few.loss) == (50, "l2")
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


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """Eight dark drawings on nothing, 24 wide and 40 high, in a folder; as an array, too."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures").mkdir()
    array = np.zeros((8, 40, 24, 4), np.uint8)
    for number in range(8):
        array[number, 4 * number : 4 * number + 12, 6:18] = (20 * number, 0, 60, 255)
        Image.fromarray(array[number]).save(tmp_path / "pictures" / f"{number}.png")
    return tmp_path / "pictures", array


SHORT = {"model": "vae", "width": 4, "steps": 2}


SIZES = [("paper", 28, 28), ("quick", 96, 32)]
SIZES += [pytest.param("paper", size, size, marks=pytest.mark.long) for size in (16, 64, 96)]
SIZES += [pytest.param("quick", size, min(size, 32), marks=pytest.mark.long) for size in (16, 28, 64)]


@pytest.mark.parametrize(("preset", "size", "side"), SIZES)
def test_a_folder_and_an_array_of_the_same_pictures_train_at_the_same_size(
    tmp_path, monkeypatch, capsys, preset, size, side
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    array = np.random.default_rng(0).integers(256, size=(3, size, size), dtype=np.uint8)
    (tmp_path / "pictures").mkdir()
    for number, image in enumerate(array):
        Image.fromarray(image).save(tmp_path / "pictures" / f"{number}.png")
    machine = Machine(device="cpu", threads=1)
    settings = SHORT | {"preset": preset, "machine": machine, "batch_size": 4}
    models = [lddr.train(images, **settings) for images in (tmp_path / "pictures", array)]
    said = f"lddr: 3 pictures of {size}x{size} pixels are read at {side}x{side} in grey\n"
    assert capsys.readouterr().err.count(said) == 2
    assert [model.image_shape for model in models] == 2 * [(side, side, 1)]
    assert np.array_equal(models[0].represent(array, resize=True), models[1].represent(array, resize=True))
    words = ["--dataset", "pictures", "--preset", preset, "--model", "vae", "--steps", "2", "--width", "4"]
    words += ["--batch-size", "4"]
    main(["train", *words, "--out", "runs", "--device", "cpu", "--threads", "1", "--quiet"])
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1  # that two steps teach nothing
    config = RunFolder(printed.out.strip()).config
    assert config.training == models[1].config.training
    assert config.images[1:] == models[0].config.images[1:]


class Items:
    """A map-style dataset without torch."""

    def __init__(self, images, labels):
        self.items = list(zip(images, labels, strict=True))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, number):
        return self.items[number]


def test_torch_datasets_loaders_and_iterables_train_as_the_array_does(tmp_path):
    images = np.random.default_rng(0).integers(256, size=(30, 16, 16, 3), dtype=np.uint8)
    labels, tensors = np.arange(30) % 3, torch.from_numpy(images).permute(0, 3, 1, 2)
    dataset = data.TensorDataset(tensors, torch.from_numpy(labels))
    settings = SHORT | {"num_latents": 3, "machine": QUIET}
    expected = lddr.train(images, **settings, out=tmp_path)
    loader = data.DataLoader(dataset, batch_size=7, num_workers=2)
    for given in (loader, Items(images, labels), iter(tensors.split(8))):
        model = lddr.train(given, **settings)
        assert model.config == expected.config
        assert np.array_equal(model.represent(images), expected.represent(images))
    again = lddr.train(loader, **settings, out=tmp_path)  # finished: the same run
    assert again.folder == expected.folder
    supervised = lddr.train(dataset, **settings, factors=True)
    assert supervised.config == lddr.train(images, **settings, factors={"label": labels}).config
    assert supervised.config.supervision is not None
    fitted = lddr.DisentangledVAE("vae", steps=2, width=4, num_latents=3, machine=QUIET).fit(loader)
    assert np.array_equal(fitted.transform(images), expected.represent(images))


def test_an_interrupted_run_on_a_loader_resumes_exactly(tmp_path):
    tensors = torch.rand(30, 1, 16, 16, generator=torch.Generator().manual_seed(0))

    def loader():
        return data.DataLoader(data.TensorDataset(tensors), batch_size=5, shuffle=True)

    def stop(step, values):
        raise KeyboardInterrupt

    settings = SHORT | {"steps": 40, "num_latents": 2}
    with pytest.raises(KeyboardInterrupt):
        lddr.train(loader(), **settings, out=tmp_path, machine=QUIET, on_log=stop)
    resumed = lddr.train(loader(), **settings, out=tmp_path, machine=QUIET)
    whole = lddr.train(loader(), **settings, machine=QUIET)
    assert np.array_equal(resumed.represent(tensors), whole.represent(tensors))


def test_a_model_is_scored_on_images_of_any_kind(tmp_path):
    circles = load_dataset("circles", 16)
    model = lddr.train("circles", "vae", **SETTINGS)
    options = {"settings": {"mig": {"samples": 1000}}, "quiet": True}
    by_name = lddr.evaluate("circles", model, ["mig"], **options)
    assert by_name == lddr.evaluate(circles, model, ["mig"], **options)
    large = load_dataset("circles", 32)
    images, factors = large[:]
    pairs = data.TensorDataset(torch.from_numpy(images).permute(0, 3, 1, 2), torch.from_numpy(factors))
    scores = lddr.evaluate(pairs, model, ["mig"], factors=True, **options)  # scaled to 16x16
    same = lddr.evaluate(images, model, ["mig"], factors=factors, **options)
    assert scores["mig"]["score"] == same["mig"]["score"] is not None


def test_a_resolution_that_is_given_counts_for_arrays_too():
    images = np.zeros((3, 32, 32), np.uint8)
    assert lddr.train(images, resolution=16, machine=QUIET, **SHORT).image_shape == (16, 16, 1)


def test_a_picture_is_read_as_in_training(pictures):
    folder, array = pictures
    model = lddr.train(str(folder), resolution=16, machine=QUIET, **SHORT)
    trained_on = load_dataset(str(folder), 16).images(np.arange(8))
    assert trained_on[0, 0, 0].tolist() == [255, 255, 255]
    paths = [folder / f"{number}.png" for number in range(8)]
    assert np.array_equal(model.read(paths), trained_on)
    assert np.array_equal(model.read(folder), trained_on)
    assert np.array_equal(model.read(str(paths[3])), trained_on[3:4])
    codes = model.represent(trained_on)
    for images in (folder, [str(path) for path in paths], tuple(paths)):
        assert np.array_equal(model.represent(images), codes)
    assert np.array_equal(model.represent(array, resize=True), codes)
    assert np.array_equal(model.represent(str(paths[2])), model.represent(trained_on[2:3]))
    assert np.array_equal(model.traverse(paths[1], 0), model.traverse(trained_on[1], 0))
    assert np.array_equal(model.traverse(array[1], 0, resize=True), model.traverse(trained_on[1], 0))
    assert np.array_equal(model.reconstruct(array, resize=True), model.reconstruct(trained_on))


def test_the_background_of_training_is_kept_with_the_model(pictures, tmp_path):
    """Light pictures alone would get black behind them: it is the training that counts."""
    array = pictures[1]
    model = lddr.train(array, resolution=16, machine=QUIET, **SHORT)
    model.save(tmp_path / "copy")
    light = array.copy()
    light[..., :3] = 250
    Image.fromarray(light[0]).save(tmp_path / "light.png")
    for again in (model, lddr.Trained.load(tmp_path / "copy")):
        assert again.read(tmp_path / "light.png")[0, 0, 0].tolist() == [255, 255, 255]
        assert again.preparation.background == "#ffffff"
    given = lddr.train(array, resolution=16, background="orange", machine=QUIET, **SHORT)
    assert given.read(tmp_path / "light.png")[0, 0, 0].tolist() == [255, 165, 0]


def test_a_model_of_opaque_images_puts_pictures_on_what_shows_them(model, tmp_path):
    for name, light, behind in (("dark", 10, 255), ("light", 240, 0)):
        picture = Image.new("RGBA", (30, 20), (light, light, light, 0))
        picture.paste((light, light, light, 255), (10, 0, 20, 20))
        picture.save(tmp_path / f"{name}.png")
        assert model.read(tmp_path / f"{name}.png")[0, 0, 0].tolist() == [behind]


def test_images_of_another_size_need_a_word(model, images):
    large = images.repeat(2, 1).repeat(2, 2)
    with pytest.raises(UserError, match="resize=True prepares them as in training"):
        model.represent(large)
    colours = np.concatenate([large, large, large], axis=3)
    for others in (large, colours, large[..., 0], large / 255):
        assert np.allclose(model.represent(others, resize=True), model.represent(model.preparation.of_images(large)))


@pytest.mark.parametrize(
    ("paths", "sentence"),
    [
        ([], "give at least one path"),
        ("nowhere.png", "there is no file nowhere.png"),
        (["a.txt"], "expected a picture"),
    ],
)
def test_pictures_that_cannot_be_read_are_a_sentence(model, tmp_path, monkeypatch, paths, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("no picture")
    with pytest.raises(UserError, match=sentence):
        model.read(paths)


def test_a_dataset_says_itself_how_its_pictures_were_prepared(pictures):
    folder, array = pictures
    own = load_dataset(str(folder), 16, "crop", "red")
    assert lddr.train(own, machine=QUIET, **SHORT).config.images == ("pictures", 16, "crop", "#ff0000")
    plain = lddr.train(ArrayDataset(array[..., :3], resolution=16), machine=QUIET, **SHORT)
    assert plain.config.images[1:] == (16, "pad", "auto")
    with pytest.raises(UserError, match="a Dataset is taken as it is; leave fit out"):
        lddr.train(own, fit="pad", machine=QUIET, **SHORT)


def test_a_run_from_before_fit_was_a_setting_opens_and_goes_on(pictures, tmp_path):
    """Its config.json has no such settings: it saw stretched pictures on black, and still does."""
    folder, _ = pictures
    settings = {"resolution": 16, "out": tmp_path / "runs", "machine": QUIET, **SHORT}
    lddr.train(str(folder), fit="legacy", **settings)
    (path,) = (tmp_path / "runs").iterdir()
    run_folder = RunFolder(path)
    facts = json.loads(run_folder.config_file.read_text())
    for name in ("fit", "background"):
        del facts["settings"][name]
    run_folder.config_file.write_text(json.dumps(facts))
    assert run_folder.config.run_name == path.name
    assert not run_folder.dataset.images([0])[0, 0, 0].any()
    assert not lddr.Trained.load(path).read(folder)[0, 0, 0].any()
    run_folder.scores_file.unlink()  # as if it had been stopped
    lddr.train(str(folder), fit="legacy", **settings)
    assert run_folder.is_finished
    lddr.train(str(folder), **settings)  # prepared otherwise: another run
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_a_kept_run_is_found_again(tmp_path, images):
    model = lddr.train("circles", "dvae", out=tmp_path, **SETTINGS)
    (folder,) = tmp_path.iterdir()
    assert {"config.json", "log.jsonl", "scores.json", "model.safetensors"} <= {file.name for file in folder.iterdir()}
    assert np.array_equal(lddr.Trained.load(folder).represent(images), model.represent(images))
    assert RunFolder(folder).config == model.config
    settings = {name: value for name, value in SETTINGS.items() if name not in ("preset", "machine")}
    assert run(configure("dvae", "circles", "quick", **settings), tmp_path, QUIET) == folder


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


@pytest.mark.filterwarnings("ignore::lddr.metrics.metric.FewSamplesWarning")
def test_a_model_that_was_kept_nowhere_has_its_discriminator_all_the_same(tmp_path):
    kept = lddr.train("circles", "factor-dvae", out=tmp_path, **SETTINGS)
    model = lddr.train("circles", "factor-dvae", **SETTINGS)
    assert model.folder is None
    assert "from" not in repr(model)
    discriminators = (each.objective().discriminator.parameters() for each in (model, kept))
    for one, other in zip(*discriminators, strict=True):
        assert torch.equal(one, other)
    assert authors_gap(model)["score"] == authors_gap(kept)["score"] > 0


@pytest.mark.filterwarnings("ignore::lddr.metrics.metric.FewSamplesWarning")
def test_a_metric_that_lacks_the_discriminator_does_not_take_the_others_with_it(tmp_path):
    lddr.train("circles", "factor-dvae", **SETTINGS).save(tmp_path)
    entry = authors_gap(lddr.Trained.load(tmp_path))
    assert entry["score"] is None
    assert entry["reason"] == "this model was saved without its discriminator; load it from the folder of its run"
