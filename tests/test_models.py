import pytest

from lddr.cli import main
from lddr.config import configure
from lddr.errors import UserError
from lddr.latents import latents
from lddr.models import models
from lddr.objectives import objectives
from lddr.sweeps.study import read_study


def test_an_alias_and_its_point_are_one_run():
    for name in models:
        point = models[name]
        config = configure(latent=point.latent, objective=point.objective, dataset="circles")
        assert config == configure(name, "circles")
        assert config.run_name == configure(name, "circles").run_name
        assert config.model == name


@pytest.mark.parametrize("latent", list(latents))
@pytest.mark.parametrize("objective", list(objectives))
def test_every_point_of_the_grid_has_a_name_that_leads_back(latent, objective):
    if objectives[objective].needs_densities and not latents[latent].has_densities:
        with pytest.raises(UserError, match=f"compares densities, and {latent} latents"):
            configure(latent=latent, objective=objective, dataset="circles")
        return
    if objectives[objective].needs_pairs and not latents[latent].can_share:
        with pytest.raises(UserError, match=f"shares posteriors, which {latent} latents cannot"):
            configure(latent=latent, objective=objective, dataset="circles")
        return
    config = configure(latent=latent, objective=objective, dataset="circles")
    assert (models[config.model].latent, models[config.model].objective) == (latent, objective)
    assert config.model in models
    assert configure(config.model, "circles") == config


def test_a_point_without_an_alias_is_called_after_its_parts():
    assert models["categorical+elbo"].latent == "categorical"
    assert "categorical+elbo" in models
    assert configure("categorical+elbo", "circles").model == "dvae"
    assert "categorical+nothing" not in models
    with pytest.raises(UserError, match="unknown objective 'elbow'; did you mean 'elbo'"):
        _ = models["categorical+elbow"]


def test_what_is_left_out_is_the_papers():
    assert configure(dataset="circles").model == "dvae"
    assert configure(latent="gaussian", dataset="circles").model == "vae"
    assert configure(objective="tc", dataset="circles").model == "tc-dvae"


def test_a_contradiction_is_a_sentence():
    with pytest.raises(
        UserError, match="vae has the latent 'gaussian', not 'categorical'; leave --model or --latent out"
    ):
        configure("vae", "circles", latent="categorical")
    assert configure("vae", "circles", objective="elbo") == configure("vae", "circles")


def test_the_command_and_a_study_take_points(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("lddr.runs.run.run", lambda config, out, machine, images=None: seen.append(config))
    main(["train", "--latent", "categorical", "--objective", "tc", "--dataset", "circles", "--beta", "3"])
    assert seen == [configure("tc-dvae", "circles", "quick", beta=3)]
    study = tmp_path / "study.toml"
    point = 'latent = ["gaussian", "categorical"]\nobjective = "tc"\nbeta = 3\n'
    study.write_text(f'name = "x"\n[[blocks]]\n{point}dataset = "circles"\n')
    assert [config.model for config in read_study(study).configs] == ["beta-tcvae", "tc-dvae"]
