import numpy as np
import pytest
import torch
from torch.distributions import Categorical as TorchCategorical
from torch.distributions import kl_divergence

from lddr import losses
from lddr.config import Config, configure
from lddr.data.factors import Factor, FactorGrid
from lddr.data.load import load_dataset
from lddr.latents.categorical import Categorical, Codebook, OneHot
from lddr.latents.latent import Sample
from lddr.objectives.total_correlation import AdversarialCorrelation
from lddr.training.batches import Batches
from lddr.training.trainer import Trainer

SMALL = {"resolution": 16, "width": 4, "steps": 50, "batch_size": 16}
CIRCLES = load_dataset("circles", 16)


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def dvae_trainer(**settings):
    return Trainer(configure("dvae", "circles", "quick", **SMALL | settings), CIRCLES, torch.device("cpu"))


def test_hard_samples_are_categories_drawn_with_their_probabilities():
    latent = Categorical(num_latents=1, num_categories=4, hard=True)
    logits = numbers(1, 4)
    noise = latent.noise(20_000, torch.Generator().manual_seed(0))
    posterior = latent(logits.expand(20_000, -1))
    sample = posterior.sample(noise, 1.0)
    assert torch.isin(sample.z, latent.positions).all()
    assert torch.allclose(sample.weights.mean((0, 1)), logits.softmax(1)[0], atol=0.02)
    assert (posterior.mean == latent.positions[logits.argmax()]).all()


def test_hard_changes_what_the_decoder_sees_and_not_the_posterior():
    soft, hard = (Categorical(num_latents=3, hard=hard) for hard in (False, True))
    outputs, noise = numbers(5, 192), soft.noise(5, torch.Generator().manual_seed(0))
    one, other = soft(outputs), hard(outputs)
    assert torch.equal(one.parameters, other.parameters)
    assert torch.equal(one.kl, other.kl)
    assert torch.equal(one.variance, other.variance)
    assert torch.equal(one.rsample(noise, 1.0, hard=True), other.rsample(noise, 1.0))  # what the gap calls hard
    assert torch.equal(other.sample(noise, 1.0).unrounded, one.rsample(noise, 1.0))


def test_positions_that_do_not_move_give_the_bits_of_fixed_ones():
    fixed, learned = dvae_trainer(), dvae_trainer(learn_positions=True)
    begun = learned.vae.latent.positions.detach().clone()
    for step in range(4):
        parts = [trainer.step(Batches(trainer, CIRCLES).batch(step)) for trainer in (fixed, learned)]
        assert all(torch.equal(parts[0][name], parts[1][name]) for name in parts[0])
        assert not torch.equal(learned.vae.latent.positions, begun)
        with torch.no_grad():
            learned.vae.latent.positions.copy_(begun)  # as a learning rate of 0 would leave them
    tensors = learned.vae.state_dict()
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in fixed.vae.state_dict().items())


def test_learned_positions_are_read_in_order():
    latent = Categorical(num_latents=2, num_categories=3, learn_positions=True)
    with torch.no_grad():
        latent.positions.copy_(torch.tensor([0.5, -2.0, 0.1]))
    assert latent.values_of(1).tolist() == pytest.approx([-2.0, 0.1, 0.5])
    sure = torch.tensor([[0.0, 0.0, 100.0, 100.0, 0.0, 0.0]])
    assert latent(sure).expected().z.tolist() == [pytest.approx([0.5, -2.0])]
    assert latent.positions.tolist() == pytest.approx([0.5, -2.0, 0.1])  # kept as they were learned


def test_a_run_without_them_is_called_as_ever_and_old_settings_open():
    config = configure("dvae", "circles")
    assert configure("dvae", "circles", hard=False, learn_positions=False).run_name == config.run_name
    assert configure("dvae", "circles", hard=True).run_name != config.run_name
    settings = config.as_dict()
    for new in ("hard", "learn_positions"):
        del settings["latent"][new]
    assert Config.from_dict(settings) == config
    assert config.run_name.endswith("_seed=0_8411419a")


def one_hot_of(**settings):
    return OneHot(num_latents=3, num_categories=5, **settings)


def test_the_decoder_gets_the_relaxed_one_hot_vectors():
    latent, outputs = one_hot_of(), numbers(4, 15)
    noise = latent.noise(4, torch.Generator().manual_seed(1))
    sample = latent(outputs).sample(noise, 0.7)
    expected = (outputs.unflatten(1, (3, 5)) + 0.7 * noise).softmax(2)
    assert torch.allclose(sample.z, expected.flatten(1))
    assert torch.equal(sample.weights.flatten(1), sample.z)
    assert latent.width == sample.z.shape[1] == 15


def test_a_low_temperature_gives_samples_of_the_categories():
    latent, outputs = OneHot(num_latents=1, num_categories=5, temperature=1e-3), numbers(1, 5)
    noise = latent.noise(20_000, torch.Generator().manual_seed(1))
    sample = latent(outputs.expand(20_000, -1)).sample(noise)
    assert (sample.z.amax(1) > 0.99).float().mean() > 0.99
    assert torch.allclose(sample.z.mean(0), outputs[0].softmax(0), atol=0.015)  # the Gumbel-max trick


def test_kl_is_torchs():
    outputs = numbers(4, 15)
    uniform = TorchCategorical(logits=torch.zeros(5))
    expected = kl_divergence(TorchCategorical(logits=outputs.unflatten(1, (3, 5))), uniform)
    assert torch.allclose(one_hot_of()(outputs).kl, expected, atol=1e-6)


def test_hard_samples_are_one_hot_with_the_gradient_of_soft_ones():
    latent, outputs = one_hot_of(), numbers(4, 15).requires_grad_()
    noise, weights = latent.noise(4, torch.Generator().manual_seed(1)), numbers(15, seed=2)
    soft, hard = (latent(outputs).sample(noise, hard=each) for each in (False, True))
    assert set(hard.z.flatten().tolist()) == {0.0, 1.0}
    assert torch.equal(hard.unrounded, soft.z)
    slopes = [torch.autograd.grad((each.z * weights).sum(), outputs, retain_graph=True)[0] for each in (soft, hard)]
    assert torch.allclose(*slopes)


def test_the_code_is_the_most_probable_category_which_embeds_to_its_vector():
    latent, outputs = one_hot_of(), numbers(4, 15)
    posterior = latent(outputs)
    assert torch.equal(posterior.categories, outputs.unflatten(1, (3, 5)).argmax(2))
    assert torch.allclose(posterior.mean, posterior.categories / 2 - 1)
    assert torch.equal(latent.embed(posterior.mean), posterior.expected().z)
    assert torch.equal(latent.values()[1], torch.linspace(-1, 1, 5))
    assert torch.allclose(posterior.expected(hard=False).z, outputs.unflatten(1, (3, 5)).softmax(2).flatten(1))


@pytest.mark.parametrize("categories", [2, 3, 11, 64, 1000])
def test_every_value_embeds_to_exactly_one_category(categories):
    latent = OneHot(num_latents=1, num_categories=categories)
    assert torch.equal(latent.embed(latent.values().T), torch.eye(categories))


def test_a_code_between_two_categories_is_a_mixture_of_both():
    latent = OneHot(num_latents=1, num_categories=5)
    assert torch.allclose(latent.embed(torch.tensor([[-0.125]])), torch.tensor([[0.0, 0.25, 0.75, 0, 0]]))
    assert torch.equal(latent.embed(torch.tensor([[-7.0], [7.0]])), torch.eye(5)[[0, 4]])


def test_masked_categories_have_nothing():
    latent, space = one_hot_of(), FactorGrid((Factor("shape", 3), Factor("size", 2)))
    latent.mask_to_factors("masked", space)
    assert latent.active.sum(1).tolist() == [3, 2, 5]
    noise = latent.noise(4, torch.Generator().manual_seed(1))
    for sample in (latent(numbers(4, 15)).sample(noise), latent(numbers(4, 15)).expected()):
        assert (sample.weights[:, ~latent.active] == 0).all()
    assert latent.values_of(1).tolist() == [-1, 1]


def test_a_discriminator_gets_whole_vectors_of_each_latent():
    latent = one_hot_of()
    sample = latent(numbers(6, 15)).sample(latent.noise(6, torch.Generator().manual_seed(1)))
    objective = AdversarialCorrelation(discriminator_width=7).attach(latent)
    seen = latent.discriminator_input(sample)
    assert seen.shape == (6, 3, 5)
    order = objective.draw(latent, 6, torch.Generator().manual_seed(2))
    negatives = objective.negatives(seen, order)
    for place in range(3):
        assert torch.equal(negatives[:, place], seen[order[:, place], place])
    assert objective.discriminator(negatives.flatten(1)).shape == (6, 2)


def test_densities_are_those_of_the_categories():
    latent, outputs = one_hot_of(), numbers(4, 15)
    posterior = latent(outputs)
    cross = posterior.cross_log_density(posterior.expected())
    chosen = TorchCategorical(logits=outputs.unflatten(1, (3, 5))).log_prob(posterior.categories[:, None])
    assert torch.allclose(cross, chosen, atol=1e-6)


def test_the_noise_follows_its_schedule():
    latent = one_hot_of(noise_start=0.5, noise_end=2.0)
    assert (latent.noise_scale(0, 10), latent.noise_scale(10, 10)) == (0.5, 2.0)
    assert one_hot_of().prior_variance == pytest.approx(losses.positions(-1, 1, 5).var(correction=0).item())


NARROW = {"resolution": 16, "width": 4, "steps": 50, "batch_size": 16, "discriminator_width": 20}


def codebook_of(values=None, **settings):
    latent = Codebook(num_latents=3, num_categories=7, **settings)
    with torch.no_grad():
        latent.codebook.copy_(numbers(7, seed=1) if values is None else values)
    return latent


def codebook_trainer(**settings):
    config = configure(latent="codebook", objective="factor", dataset="circles", preset="quick", **NARROW | settings)
    return Trainer(config, load_dataset("circles", 16), torch.device("cpu"))


def test_the_posterior_comes_from_squared_distances():
    latent, outputs = codebook_of(), numbers(5, 3)
    values = np.sort(latent.codebook.detach().numpy())
    distances = (outputs.numpy()[:, :, None] - values) ** 2
    expected = np.exp(-distances) / np.exp(-distances).sum(2, keepdims=True)
    posterior = latent(outputs)
    assert np.allclose(posterior.parameters.detach(), expected, atol=1e-6)
    by_torch, uniform = TorchCategorical(probs=torch.from_numpy(expected)), TorchCategorical(logits=torch.zeros(7))
    assert torch.allclose(posterior.kl, kl_divergence(by_torch, uniform).float(), atol=1e-5)
    assert np.allclose(posterior.variance.detach(), expected @ values**2 - (expected @ values) ** 2, atol=1e-5)
    assert np.array_equal(posterior.expected().z.detach(), values[distances.argmin(2)])  # at test time


def test_in_training_samples_are_those_of_the_gumbel_softmax():
    latent, outputs = codebook_of(), numbers(5, 3)
    noise = latent.noise(5, torch.Generator().manual_seed(2))
    sample = latent(outputs).sample(noise, latent.noise_scale(7, 10))
    values = latent.codebook.detach().sort().values
    soft = (noise - (outputs.unsqueeze(2) - values) ** 2).softmax(2)
    assert torch.allclose(sample.weights, soft, atol=1e-6)
    assert torch.allclose(sample.z, soft @ values, atol=1e-6)


def test_with_sharp_logits_and_even_values_it_is_rounding_to_the_nearest():
    even = torch.linspace(-1, 1, 7)
    latent, outputs = codebook_of(even[torch.randperm(7)], sharpness=1e5), numbers(40, 3)
    rounded = (losses.nearest(outputs, even.expand(3, -1)) * even).sum(2)
    noise, posterior = latent.noise(40, torch.Generator().manual_seed(2)), latent(outputs)
    for sample in (posterior.expected(), posterior.expected(hard=False), posterior.sample(noise, 1.0)):
        assert torch.allclose(sample.z, rounded, atol=1e-3)


def test_of_two_values_as_near_the_lower_one_is_taken():
    latent = codebook_of(torch.tensor([3.0, 1.0, -1.0, -3.0, 5.0, 5.0, 7.0]))
    posterior = latent(torch.tensor([[0.0, 2.0, 5.0]]))
    assert posterior.expected().z.tolist() == [[-1.0, 1.0, 5.0]]
    assert posterior.categories.tolist() == [[1, 2, 4]]


def test_straight_through_codes_have_the_gradient_of_soft_ones():
    latent, outputs = codebook_of(), numbers(5, 3).requires_grad_()
    posterior = latent(outputs)
    soft, hard = posterior.expected(hard=False), posterior.expected(hard=True)
    slopes = [torch.autograd.grad(each.z.sum(), [outputs], retain_graph=True)[0] for each in (soft, hard)]
    assert torch.allclose(*slopes, atol=1e-6)
    assert torch.equal(hard.z, posterior.mean)


def test_the_codebook_begins_as_the_seed_says_and_moves():
    one, same, other = (codebook_trainer(seed=seed) for seed in (0, 0, 1))
    begun = one.vae.latent.codebook.detach().clone()
    assert begun.shape == (64,)
    assert torch.equal(begun, same.vae.latent.codebook)
    assert not torch.equal(begun, other.vae.latent.codebook)
    assert abs(begun.mean()) < 0.5
    assert 0.7 < begun.std() < 1.3
    one.step(Batches(one, load_dataset("circles", 16)).batch(0))
    assert (one.vae.latent.codebook != begun).any()


def test_weight_decay_leaves_the_codebook_alone():
    plain, decayed = codebook_trainer(), codebook_trainer(weight_decay=0.5)
    for trainer in (plain, decayed):
        trainer.step(Batches(trainer, load_dataset("circles", 16)).batch(0))
    assert torch.equal(plain.vae.latent.codebook, decayed.vae.latent.codebook)
    weights = (trainer.vae.encoder.head[0].weight for trainer in (plain, decayed))
    assert not torch.equal(*weights)


def test_the_discriminator_sees_soft_vectors_whose_latents_are_permuted():
    latent = codebook_of()
    objective = AdversarialCorrelation(discriminator_width=5).attach(latent)
    assert objective.discriminator.layers[0].in_features == 21
    weights = numbers(6, 3, 7).softmax(2)
    assert torch.equal(latent.discriminator_input(Sample(numbers(6, 3), weights)), weights)
    permutation = objective.draw(latent, 6, torch.Generator().manual_seed(0))
    negatives = objective.negatives(weights, permutation)
    for number in range(3):
        assert torch.equal(negatives[:, number], weights[permutation[:, number], number])  # vectors stay whole


def test_masked_values_are_never_taken():
    latent = codebook_of()
    latent.active[0, 1:6] = False
    noise, posterior = latent.noise(50, torch.Generator().manual_seed(2)), latent(numbers(50, 3))
    for sample in (posterior.expected(), posterior.sample(noise, 1.0)):
        assert (sample.weights[:, 0, 1:6] == 0).all()
    assert set(posterior.expected().z[:, 0].tolist()) <= set(latent.values_of(0).tolist())
    assert len(latent.values_of(0)) == 2


@pytest.mark.parametrize("loss", ["cross-entropy", "masked"])
def test_labels_pull_the_expected_value_to_that_of_their_category(loss):
    """The slope of -log q(j) by e is 2 (E[v] - v_j), since log q(v_j) is -(e - v_j)² up to a constant."""
    space, factors = FactorGrid((Factor("a", 3), Factor("b", 5))), np.array([[0, 4], [2, 1], [1, 0]])
    latent, outputs = codebook_of(), numbers(3, 3).requires_grad_()
    latent.mask_to_factors(loss, space)
    posterior, targets = latent(outputs), latent.targets(loss, factors, space)
    (slope,) = torch.autograd.grad(latent.risk(loss, posterior, targets), outputs)
    values = latent.codebook.detach().sort().values
    expected = posterior.parameters.detach() @ values
    assert torch.allclose(slope[:, :2], 2 * (expected[:, :2] - values[targets]) / 3, atol=1e-5)
    assert not slope[:, 2].any()
