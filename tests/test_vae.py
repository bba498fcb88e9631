import pytest
import torch

from lddr.config import configure
from lddr.data.load import load_dataset
from lddr.models import models
from lddr.training.trainer import build_vae

GAUSSIAN = {"vae", "beta-vae", "annealed-vae", "factor-vae", "beta-tcvae", "dip-vae-i", "dip-vae-ii"}
CATEGORICAL = {"dvae", "beta-dvae", "annealed-dvae", "factor-dvae", "tc-dvae", "dip-dvae-i", "dip-dvae-ii"}


def test_the_names_people_know_are_all_there():
    assert {name for name in models if models[name].latent == "gaussian"} == GAUSSIAN
    assert {name for name in models if models[name].latent == "categorical"} == CATEGORICAL


@pytest.mark.parametrize("decoder", ["deconvolution", "broadcast"])
@pytest.mark.parametrize("model", ["vae", "dvae"])
@pytest.mark.parametrize(("dataset", "resolution"), [("circles", 16), ("dsprites", 32), ("rooms", 32)])
def test_images_go_in_and_logits_of_the_same_shape_come_out(decoder, model, dataset, resolution):
    config = configure(model, dataset, decoder=decoder, resolution=resolution, width=4, num_latents=5)
    loaded = load_dataset(dataset, resolution)
    vae = build_vae(config, loaded).initialise(torch.Generator().manual_seed(0))
    images = torch.from_numpy(loaded.batch(0, 0, 3)).permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
    logits, latent = vae(images)
    assert logits.shape == images.shape
    assert latent.z.shape == (3, 5)
    noisy, _ = vae(images, vae.latent.noise(3, torch.Generator().manual_seed(1)), 1.0)
    assert not torch.equal(noisy, logits)


def test_weights_depend_on_the_generator_alone():
    config, dataset = configure("dvae", "circles", resolution=16, width=4), load_dataset("circles", 16)
    one, same, other = (
        build_vae(config, dataset).initialise(torch.Generator().manual_seed(seed)).state_dict() for seed in (0, 0, 1)
    )
    weights = [name for name in one if name.endswith("weight")]
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in weights)
