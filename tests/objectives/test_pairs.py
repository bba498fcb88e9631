import pytest
import torch
from torch.distributions import Categorical, Normal, kl_divergence

import lddr
from lddr.config import configure
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.hardware import Machine
from lddr.runs.run import run
from lddr.training.batches import Batches
from lddr.training.trainer import Trainer

SMALL = {"resolution": 16, "width": 2, "batch_size": 8}


def gaussian(means, variances):
    return lddr.latents.Gaussian(num_latents=2).posterior(torch.stack([means, variances.log()], 2))


def table(probabilities):
    latent = lddr.latents.Categorical(num_latents=probabilities.shape[1], num_categories=probabilities.shape[2])
    return latent.posterior(probabilities.log())


def test_kl_of_a_pair_is_that_of_torch():
    generator = torch.Generator().manual_seed(0)
    means, variances = torch.randn(6, 2, generator=generator), torch.rand(6, 2, generator=generator) + 0.1
    first, second = (Normal(m, v.sqrt()) for m, v in zip(means.chunk(2), variances.chunk(2), strict=True))
    torch.testing.assert_close(gaussian(means, variances).pair_kl(), kl_divergence(first, second))
    probabilities = torch.rand(6, 3, 5, generator=generator).softmax(2)
    first, second = map(Categorical, probabilities.chunk(2))
    torch.testing.assert_close(table(probabilities).pair_kl(), kl_divergence(first, second))


def test_gaussians_are_averaged_or_multiplied_by_hand():
    means, variances = torch.tensor([[1.0, 5.0], [3.0, -5.0]]), torch.tensor([[1.0, 1.0], [3.0, 1.0]])
    averaged = lddr.objectives.AdaGVAE().share(gaussian(means, variances))
    torch.testing.assert_close(averaged.mean, torch.tensor([[2.0, 5.0], [2.0, -5.0]]))
    torch.testing.assert_close(averaged.variance, torch.tensor([[2.0, 1.0], [2.0, 1.0]]))
    # precisions 1 and 1/3 have the mean 2/3; the mean is (1·1 + 3·1/3) / (4/3)
    multiplied = lddr.objectives.MLVAE().share(gaussian(means, variances))
    torch.testing.assert_close(multiplied.mean, torch.tensor([[1.5, 5.0], [1.5, -5.0]]))
    torch.testing.assert_close(multiplied.variance, torch.tensor([[1.5, 1.0], [1.5, 1.0]]))


def test_tables_are_averaged_or_multiplied_by_hand():
    rows = torch.tensor([[[0.8, 0.2], [0.99, 0.01]], [[0.2, 0.8], [0.01, 0.99]]])
    averaged = lddr.objectives.AdaGVAE().share(table(rows)).probabilities
    torch.testing.assert_close(
        averaged, torch.stack([torch.tensor([[0.5, 0.5], each]) for each in rows[:, 1].tolist()])
    )
    rows[1, 0] = torch.tensor([0.5, 0.5])  # √(0.8 · 0.5) : √(0.2 · 0.5) = 2 : 1
    multiplied = lddr.objectives.MLVAE().share(table(rows)).probabilities
    torch.testing.assert_close(multiplied[:, 0], torch.tensor([[2 / 3, 1 / 3]] * 2))
    torch.testing.assert_close(multiplied[:, 1], rows[:, 1])


def test_the_threshold_is_midway_between_the_smallest_and_the_largest_kl():
    # KL = d²/2 of unit variances: 2, 4.5 and 8, whose midpoint is 5; half of the largest, 4, would leave the second
    means = torch.tensor([[0.0, 0.0, 0.0], [2.0, 3.0, 4.0]])
    posterior = lddr.latents.Gaussian(num_latents=3).posterior(torch.stack([means, torch.zeros(2, 3)], 2))
    shared = lddr.objectives.AdaGVAE().share(posterior).mean
    assert shared.tolist() == [[1.0, 1.5, 0.0], [1.0, 1.5, 4.0]]


@pytest.mark.parametrize("objective", [lddr.objectives.AdaGVAE(), lddr.objectives.MLVAE()])
def test_masked_categories_stay_at_zero_and_gradients_are_finite(objective):
    latent = lddr.latents.Categorical(num_latents=3, num_categories=4)
    latent.active[0, 2:] = False
    outputs = torch.randn(4, latent.num_parameters, generator=torch.Generator().manual_seed(0), requires_grad=True)
    shared = objective.share(latent(outputs))
    assert (shared.probabilities[:, 0, 2:] == 0).all()
    torch.testing.assert_close(shared.probabilities.sum(2), torch.ones(4, 3))
    (shared.mean_kl + shared.sample().z.sum()).backward()
    assert outputs.grad.isfinite().all()


def test_a_training_step_is_that_of_your_own_loop():
    config = configure("ada-dvae", "circles", steps=4, **SMALL)
    dataset = load_dataset("circles", 16)
    trainer = Trainer(config, dataset, torch.device("cpu"))
    batch = Batches(trainer, dataset).batch(0)
    output = trainer.vae(batch.images, batch.noise, batch.noise_scale, share=trainer.objective.share)
    own = trainer.objective(output, batch.images).total
    torch.testing.assert_close(trainer.loss(batch).total, own)
    assert own != trainer.objective(trainer.vae(batch.images, batch.noise, batch.noise_scale), batch.images).total


@pytest.mark.parametrize("model", ["ada-gvae", "ada-ml-dvae"])
def test_a_stopped_run_resumes_to_the_same_weights(model):
    config, dataset = configure(model, "circles", steps=6, pairs="random", **SMALL), load_dataset("circles", 16)
    whole, resumed = (Trainer(config, dataset, torch.device("cpu")) for _ in range(2))
    for step in range(6):
        if step == 3:
            resumed.restore({name: each.clone() for name, each in whole.tensors().items()})
        whole.step(Batches(whole, dataset).batch(step))
    for step in range(3, 6):
        resumed.step(Batches(resumed, dataset).batch(step))
    for name, tensor in whole.tensors().items():
        assert torch.equal(tensor, resumed.tensors()[name]), name


def test_pairs_are_part_of_the_name_of_a_run():
    names = [configure("ada-gvae", "circles", pairs=pairs).fingerprint for pairs in (None, "1", "random")]
    assert names[0] == names[1] != names[2]
    with pytest.raises(UserError, match="vae has no setting 'pairs'; models with it: "):
        configure("vae", "circles", pairs="1")


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"batch_size": 7}, "an even number of images, not 7"), ({"pairs": "2"}, "may differ in 1 to 1 factors")],
)
def test_impossible_pairs_write_nothing(tmp_path, settings, message):
    config = configure("ada-gvae", "circles", steps=1, **SMALL | settings)
    with pytest.raises(UserError, match=message):
        run(config, tmp_path / "runs", Machine("cpu", quiet=True))
    assert not (tmp_path / "runs").exists()
