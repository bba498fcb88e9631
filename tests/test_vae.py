import pytest
import torch
from torch import nn

from lddr.config import configure
from lddr.data.load import load_dataset
from lddr.latents import latents
from lddr.likelihoods import likelihoods
from lddr.models import models
from lddr.networks.coders import initialise
from lddr.training.trainer import output_bias, vae_of
from lddr.vae import VAE, in_precision

GAUSSIAN = {"vae", "beta-vae", "annealed-vae", "factor-vae", "beta-tcvae", "dip-vae-i", "dip-vae-ii"}
GAUSSIAN |= {"ada-gvae", "ada-ml-vae"}
CATEGORICAL = {"dvae", "beta-dvae", "annealed-dvae", "factor-dvae", "tc-dvae", "dip-dvae-i", "dip-dvae-ii"}
CATEGORICAL |= {"ada-dvae", "ada-ml-dvae"}


def initialised(config, dataset, seed):
    vae = vae_of(config, dataset.image_shape)
    initialise(vae, torch.Generator().manual_seed(seed))
    return vae


def test_the_names_people_know_are_all_there():
    assert {name for name in models if models[name].latent == "gaussian"} == GAUSSIAN
    assert {name for name in models if models[name].latent == "categorical"} == CATEGORICAL


@pytest.mark.parametrize(
    ("decoder", "model", "dataset", "resolution"),
    [
        ("deconvolution", "vae", "circles", 16),
        ("broadcast", "dvae", "circles", 16),
        ("broadcast", "vae", "dsprites", 32),
        ("deconvolution", "dvae", "dsprites", 32),
        ("deconvolution", "dvae", "rooms", 32),
        pytest.param("broadcast", "vae", "rooms", 32, marks=pytest.mark.long),
    ],
)
def test_images_go_in_and_logits_of_the_same_shape_come_out(decoder, model, dataset, resolution):
    config = configure(model, dataset, decoder=decoder, resolution=resolution, width=4, num_latents=5)
    loaded = load_dataset(dataset, resolution)
    vae = initialised(config, loaded, 0)
    images = torch.from_numpy(loaded.batch(0, 0, 3)).permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
    output = vae.eval()(images)
    assert output.reconstruction.shape == images.shape
    assert output.z.shape == output.posterior.mean.shape == (3, 5)
    noisy = vae(images, vae.latent.noise(3, torch.Generator().manual_seed(1)), 1.0)
    assert not torch.equal(noisy.reconstruction, output.reconstruction)


def test_weights_depend_on_the_generator_alone():
    config, dataset = configure("dvae", "circles", resolution=16, width=4), load_dataset("circles", 16)
    one, same, other = (initialised(config, dataset, seed).state_dict() for seed in (0, 0, 1))
    weights = [name for name in one if name.endswith("weight")]
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in weights)


def of_plain_modules(latent, likelihood="bernoulli"):
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(16, latent.num_parameters))
    decoder = nn.Sequential(nn.Linear(latent.width, 16), nn.Unflatten(1, (1, 4, 4)))
    return VAE(encoder, decoder, latent, likelihood)


@pytest.mark.parametrize("name", list(latents))
def test_any_modules_of_the_right_sizes_do(name):
    vae, images = of_plain_modules(latents[name](num_latents=3).build()), torch.rand(5, 1, 4, 4)
    output, posterior = vae.eval()(images), vae.encode(images)
    assert torch.equal(output.z, posterior.expected().z)  # without noise
    assert torch.equal(output.reconstruction, vae.decoder(output.z))
    assert torch.equal(vae.decode(output.z), output.reconstruction.sigmoid())
    assert output.vae is vae


def test_in_training_mode_posteriors_are_sampled_and_noise_can_be_given():
    vae, images = of_plain_modules(latents["gaussian"](num_latents=3).build()), torch.rand(5, 1, 4, 4)
    mean, noise = vae.encode(images).mean, torch.randn(5, 3)
    assert not torch.allclose(vae.train()(images).z, mean)
    assert torch.equal(vae.eval()(images).z, mean)
    for mode in (True, False):
        posterior = vae.train(mode)(images, noise, 2.0).posterior
        assert torch.allclose(vae(images, noise, 2.0).z, mean + 2 * noise * posterior.variance.sqrt(), atol=1e-6)
    assert torch.equal(vae(images, noise, 0.0).z, mean)


@pytest.mark.parametrize("name", list(likelihoods))
def test_a_likelihood_is_a_name_or_a_module(name):
    latent, module = latents["gaussian"](num_latents=3).build(), likelihoods[name]().build()
    assert of_plain_modules(latent, module).likelihood is module
    vae = of_plain_modules(latent, name)
    assert type(vae.likelihood) is type(module)
    pixels = vae.decode(torch.randn(5, 3))
    assert 0 <= pixels.min() <= pixels.max() <= 1


def test_in_a_lower_precision_outputs_are_float32():
    network, inputs, seen = nn.Linear(4, 4), torch.randn(3, 4), []
    network.register_forward_hook(lambda module, given, result: seen.append(result.dtype))
    assert in_precision(network, None) is network
    found = in_precision(network, torch.bfloat16)(inputs)
    assert (seen, found.dtype) == ([torch.bfloat16], torch.float32)
    assert torch.allclose(found, network(inputs), atol=0.05)


def test_the_output_bias_is_that_of_the_layer_called_last():
    vae = initialised(configure("dvae", "circles", resolution=16, width=4), load_dataset("circles", 16), 0)
    assert output_bias(vae) is vae.decoder.last.bias
