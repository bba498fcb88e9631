import json

import pytest

from lddr.config import Config, configure
from lddr.errors import UserError
from lddr.models import models


@pytest.mark.parametrize("model", list(models))
@pytest.mark.parametrize("preset", ["paper", "quick", "standard"])
@pytest.mark.parametrize("dataset", ["circles", "dsprites", "rooms", "shapes3d"])
def test_settings_survive_json(model, preset, dataset):
    config = configure(model, dataset, preset)
    assert Config.from_dict(json.loads(json.dumps(config.as_dict()))) == config


def test_the_defaults_are_the_papers():
    config = configure("factor-dvae", "dsprites")
    assert config.training.steps == 300_000
    assert config.training.batch_size == 64
    assert config.training.learning_rate == 1e-4
    assert config.networks.width == 32
    assert config.networks.kernels == (4, 4, 4, 4)
    assert (config.latent.num_latents, config.latent.num_categories) == (10, 64)
    assert (config.latent.low, config.latent.high) == (-1, 1)
    assert (config.latent.noise_start, config.latent.noise_end) == (0.5, 2.0)
    circles = configure("dvae", "circles")
    assert circles.latent.num_latents == 2
    assert circles.networks.decoder == "broadcast"


def test_a_new_default_takes_no_run_the_name_of_an_older_one():
    """The name with the weight of before is the one that such runs had when it was the default."""
    before, now = (configure("dvae", "dsprites", supervision="masked", risk_of=kind) for kind in ("image", "batch"))
    assert configure("dvae", "dsprites", supervision="masked") == now
    assert before.run_name == "dsprites_dvae_masked=100_omega=1_seed=0_d7293aa8"
    assert now.run_name != before.run_name


def test_how_pictures_are_prepared_belongs_to_a_run_and_renames_none_of_before():
    """These names are those that runs had when pictures were always stretched and put on black."""
    old = configure("vae", "odd", fit="legacy")
    assert old.run_name == "odd_vae_seed=0_74580e68"
    assert configure("vae", "dsprites").run_name == "dsprites_vae_seed=0_01fb8ca4"
    ways = [{}, {"fit": "crop"}, {"fit": "stretch"}, {"background": "black"}, {"background": "white"}]
    assert len({configure("vae", "odd", **way).run_name for way in ways} | {old.run_name}) == 6
    assert configure("vae", "odd").images == ("odd", None, "pad", "auto")
    assert configure("vae", "dsprites").images == ("dsprites", None, None, "auto")
    assert configure("vae", "odd", background="White") == configure("vae", "odd", background="#fff")
    settings = old.as_dict()
    del settings["fit"], settings["background"]
    assert Config.from_dict(settings) == old


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"background": "blackish"}, "background must be auto or a colour such as white or #ff8800, not 'blackish'"),
        ({"fit": "squeeze"}, "fit must be one of pad, crop, stretch, legacy, not 'squeeze'"),
    ],
)
def test_ways_to_prepare_pictures_that_there_are_not(settings, sentence):
    with pytest.raises(UserError, match=sentence):
        configure("vae", "odd", **settings)


@pytest.mark.parametrize(
    ("preset", "own_size", "given", "size", "weight"),
    [
        ("quick", 16, None, 16, 16.0),
        ("quick", 64, None, 32, 4.0),
        ("quick", 16, 64, 64, 1.0),
        ("standard", 16, None, 16, 16.0),
        ("standard", 200, None, 64, 1.0),
        ("paper", 64, None, None, 1.0),
        ("paper", 128, None, 128, 1.0),
        ("paper", 16, 32, 32, 1.0),
        ("paper", 28, None, 28, 1.0),
        ("paper", "48x96", None, "48x96", 1.0),
        ("quick", "48x96", None, "16x32", 8.0),
        ("quick", "16x8", None, "16x8", 32.0),
        ("quick", "20x200", None, "8x32", 16.0),
    ],
)
def test_a_preset_makes_own_images_smaller_and_never_larger(preset, own_size, given, size, weight):
    config = configure("vae", "pictures", preset, own_size=own_size, resolution=given)
    assert (config.resolution, config.training.reconstruction_weight) == (size, weight)


@pytest.mark.parametrize("given", ["32x32", "32X32", "32", 32.0])
def test_a_square_is_one_number_however_it_is_written(given):
    config, plain = (configure("vae", "circles", resolution=each) for each in (given, 32))
    assert config.as_dict()["resolution"] == 32
    assert config.run_name == plain.run_name


def test_a_height_and_a_width_are_kept_as_text():
    config = configure("vae", "pictures", resolution="48X96")
    assert config.as_dict()["resolution"] == "48x96"
    assert Config.from_dict(config.as_dict()) == config
    assert config.run_name != configure("vae", "pictures", resolution="96x48").run_name


@pytest.mark.parametrize("given", ["48x", "x", "48x96x3", "0x16", 0, -8, 8.5, "wide", True])
def test_other_resolutions_are_refused(given):
    sentence = "resolution must be a number of pixels, or HEIGHTxWIDTH such as 48x96, not"
    with pytest.raises(UserError, match=sentence):
        configure("vae", "pictures", resolution=given)


def test_a_setting_finds_its_place():
    config = configure("factor-dvae", "dsprites", gamma=20, seed=3, num_latents=6, width=16, kernels=[4, 4, 2, 2])
    assert config.objective.gamma == 20.0
    assert isinstance(config.objective.gamma, float)
    assert config.training.seed == 3
    assert config.latent.num_latents == 6
    assert config.networks.width == 16
    assert config.networks.kernels == (4, 4, 2, 2)


def test_supervision_has_settings_of_its_own():
    config = configure("dvae", "dsprites", supervision="masked", labels=1000, omega=4)
    assert (config.supervision.loss, config.supervision.labels, config.supervision.omega) == ("masked", 1000, 4.0)
    with pytest.raises(UserError, match=r"omega belongs to supervision; choose one .*, of: cross-entropy, masked"):
        configure("dvae", "dsprites", omega=4)


@pytest.mark.parametrize(
    ("model", "settings", "sentence"),
    [
        ("dvae", {"gamma": 1}, "dvae has no setting 'gamma'; models with it: factor-dvae, factor-qvae, factor-vae"),
        ("vae", {"num_categories": 8}, "vae has no setting 'num_categories'; models with it: ada-dvae, "),
        (
            "vae",
            {"learning_rates": 1},
            "unknown setting 'learning_rates'; did you mean 'learning_rate'. vae has: background, batch_size",
        ),
        ("vae", {"steps": 1.5}, "steps must be a whole number"),
        ("beta-vae", {"beta": "much"}, "beta must be a number, not 'much'"),
        ("dve", {}, "unknown model 'dve'; did you mean 'dvae'"),
        ("vae", {"fit": "pad"}, "dsprites has images of its own; fit and background are for your own pictures"),
        ("vae", {"background": "red"}, "dsprites has images of its own; fit and background are for your own pictures"),
        ("vae", {"preset": "slow"}, "unknown preset 'slow'; there are: paper, quick, standard"),
    ],
)
def test_mistakes_are_sentences(model, settings, sentence):
    with pytest.raises(UserError, match=sentence):
        configure(model, "dsprites", **settings)


def test_settings_of_another_version_are_refused():
    settings = configure().as_dict()
    settings["training"]["momentum"] = 0.9
    with pytest.raises(UserError, match="of another version of lddr"):
        Config.from_dict(settings)
    with pytest.raises(UserError, match="of another version of lddr"):
        Config.from_dict({"model": "dvae"})


def test_a_name_says_what_it_is_and_two_runs_never_share_one():
    config = configure("factor-dvae", "dsprites", gamma=10, seed=7)
    assert config.run_name.startswith("dsprites_factor-dvae_gamma=10_seed=7_")
    assert config.run_name == configure("factor-dvae", "dsprites", gamma=10.0, seed=7).run_name
    others = [{"steps": 5}, {"width": 8}, {"precision": "bf16"}, {"seed": 8}, {"resolution": 32}, {"low": 0}]
    names = {configure("factor-dvae", "dsprites", **{"gamma": 10, "seed": 7, **other}).run_name for other in others}
    assert len(names | {config.run_name}) == len(others) + 1


def test_a_path_makes_a_plain_folder_name():
    name = configure("vae", "/data/my photos/summer 24").run_name
    assert "/" not in name
    assert " " not in name
    assert name.startswith("data-my-photos-summer-24_vae_seed=0_")


@pytest.mark.parametrize(("resolution", "weight"), [(None, 4.0), (16, 16.0), (32, 4.0), ("64", 1.0), (128, 0.25)])
def test_quick_runs_keep_the_balance_of_the_paper_at_every_resolution(resolution, weight):
    config = configure("dvae", "dsprites", "quick", resolution=resolution)
    assert config.training.reconstruction_weight == weight
    assert (
        configure("dvae", "dsprites", "quick", resolution=resolution, reconstruction_weight=2).flat()[
            "reconstruction_weight"
        ]
        == 2
    )
    assert configure("dvae", "dsprites", "paper", resolution=resolution).training.reconstruction_weight == 1


def test_quick_runs_on_images_of_ones_own_are_small_and_on_official_files_as_large_as_these():
    assert configure("dvae", "holiday/pictures", "quick").resolution == 32
    official = configure("dvae", "shapes3d", "quick")
    assert (official.resolution, official.training.reconstruction_weight) == (None, 1.0)


@pytest.mark.parametrize(("low", "high"), [(1, -1), (0.5, 0.5)])
def test_categories_lie_in_their_order(low, high):
    with pytest.raises(UserError, match="low must be less than high"):
        configure("dvae", "circles", low=low, high=high)


@pytest.mark.parametrize(
    ("model", "loss", "dataset", "preset", "num_latents"),
    [
        ("dvae", "masked", "dsprites", "quick", 5),
        ("vae", "bce", "shapes3d", "quick", 6),
        ("dvae", "masked", "dsprites", "standard", 5),
        ("dvae", None, "dsprites", "quick", 10),
        ("dvae", "masked", "dsprites", "paper", 10),
    ],
)
def test_with_labels_the_quick_preset_has_as_many_latents_as_factors(model, loss, dataset, preset, num_latents):
    config = configure(model, dataset, preset, supervision=loss)
    assert config.latent.settings["num_latents"] == num_latents
    assert configure(model, dataset, preset, supervision=loss, num_latents=8).latent.settings["num_latents"] == 8
