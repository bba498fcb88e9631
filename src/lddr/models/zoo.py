"""The names people know: each is a point on the grid latent x objective."""

from dataclasses import dataclass, fields

from lddr.models.latent import latents
from lddr.objectives.losses import Objective, objectives
from lddr.registry import Registry


@dataclass(frozen=True)
class Model:
    """A latent family with an objective, by their names in the registries."""

    latent: str
    objective: str
    title: str

    @property
    def knobs(self) -> dict[str, float]:
        """The objective's settings and their defaults."""
        return {field.name: field.default for field in fields(self.objective_settings)}  # type: ignore[misc]

    @property
    def grid(self) -> dict[str, tuple[float, ...]]:
        """The values that the paper, or Locatello et al., try."""
        return self.objective_settings.grid

    @property
    def objective_settings(self) -> type[Objective]:
        return objectives[self.objective]

    @property
    def latent_settings(self) -> type:
        return latents[self.latent]


models: Registry[Model] = Registry("model", homes=())
for _name, _latent, _objective, _title in (
    ("vae", "gaussian", "elbo", "VAE"),
    ("beta-vae", "gaussian", "beta", "β-VAE"),
    ("annealed-vae", "gaussian", "annealed", "AnnealedVAE"),
    ("factor-vae", "gaussian", "factor", "FactorVAE"),
    ("beta-tcvae", "gaussian", "tc", "β-TCVAE"),
    ("dip-vae-i", "gaussian", "dip-i", "DIP-VAE-I"),
    ("dip-vae-ii", "gaussian", "dip-ii", "DIP-VAE-II"),
    ("dvae", "categorical", "elbo", "D-VAE"),
    ("beta-dvae", "categorical", "beta", "β-DVAE"),
    ("annealed-dvae", "categorical", "annealed", "AnnealedDVAE"),
    ("factor-dvae", "categorical", "factor", "FactorDVAE"),
    ("tc-dvae", "categorical", "tc", "TC-DVAE"),
    ("dip-dvae-i", "categorical", "dip-i", "DIP-DVAE-I"),
    ("dip-dvae-ii", "categorical", "dip-ii", "DIP-DVAE-II"),
):
    models.register(_name)(Model(_latent, _objective, _title))
