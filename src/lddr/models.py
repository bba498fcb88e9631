"""Names of models: each is an alias for a combination of latent and objective; every combination has a name."""

from dataclasses import dataclass

from lddr.errors import UserError
from lddr.latents import latents
from lddr.objectives import objectives
from lddr.parts import Part
from lddr.registry import Registry


@dataclass(frozen=True)
class Model:
    """A latent with an objective, by their names in the registries."""

    latent: str
    objective: str
    title: str
    paper: str = ""  # that introduced it
    unlike: str = ""  # how the preset `paper` differs from that paper, besides the networks

    @property
    def family(self) -> Part:
        return latents[self.latent]

    @property
    def goal(self) -> Part:
        return objectives[self.objective]

    @property
    def grid(self) -> dict[str, tuple[float, ...]]:
        """The values that the paper, or Locatello et al., try for its settings."""
        return self.goal.grid


class Models(Registry[Model]):
    """Models by alias, or by latent and objective, such as "categorical+elbo"."""

    def __getitem__(self, name: str) -> Model:
        latent, plus, objective = name.partition("+")
        if not plus:
            return super().__getitem__(name)
        title = f"{latents[latent].title} latents, {objectives[objective].name}"
        return Model(latent, objective, title)

    def __contains__(self, name: object) -> bool:
        latent, plus, objective = str(name).partition("+")
        return latent in latents and objective in objectives if plus else super().__contains__(name)

    def name_of(self, latent: str, objective: str) -> str:
        """Return the alias of a combination, or the name made of both."""
        for name, model in self._fill().items():
            if (model.latent, model.objective) == (latent, objective):
                return name
        return f"{latents[latent].name}+{objectives[objective].name}"

    def chosen(self, model: str | None, latent: str | None, objective: str | None) -> str:
        """Return the name of the model that a user asked for by its name, or by latent, objective or both."""
        if model is None:
            return self.name_of(latent or "categorical", objective or "elbo")
        found = self[model]
        for kind, wanted, has in (("latent", latent, found.latent), ("objective", objective, found.objective)):
            if wanted not in (None, has):
                raise UserError(f"{model} has the {kind} {has!r}, not {wanted!r}; leave --model or --{kind} out")
        return self.name_of(found.latent, found.objective)


models = Models("model", homes=())
DVAE = "Friede et al. 2023"
UNLIKE = {
    "qvae": "Bernoulli likelihood, not a squared error; temperature 1, theirs falls from 1 to 0.37",
    "factor-qvae": "as qvae; model and discriminator negatives share a batch of 512, theirs have 256 images each",
    "fsq-ae": "values and training as in Tripod (Hsu et al. 2024), without its penalties; bound=shifted is Mentzer's, "
    "bound=sigmoid iFSQ's",
    "one-hot-vae": "temperature 1, theirs falls to 0.5",
    "vq-vae": "a few latents, theirs are a grid of them; steps, batch and learning rate are the D-VAE's",
    "tripod": "the Hessian penalty is normalised over the batch, theirs for each code",
}
for _name, _latent, _objective, _title, _paper in (
    ("vae", "gaussian", "elbo", "VAE", "Kingma & Welling 2014"),
    ("beta-vae", "gaussian", "beta", "β-VAE", "Higgins et al. 2017"),
    ("annealed-vae", "gaussian", "annealed", "AnnealedVAE", "Burgess et al. 2018"),
    ("factor-vae", "gaussian", "factor", "FactorVAE", "Kim & Mnih 2018"),
    ("beta-tcvae", "gaussian", "tc", "β-TCVAE", "Chen et al. 2018"),
    ("dip-vae-i", "gaussian", "dip-i", "DIP-VAE-I", "Kumar et al. 2018"),
    ("dip-vae-ii", "gaussian", "dip-ii", "DIP-VAE-II", "Kumar et al. 2018"),
    ("dvae", "categorical", "elbo", "D-VAE", DVAE),
    ("beta-dvae", "categorical", "beta", "β-DVAE", ""),
    ("annealed-dvae", "categorical", "annealed", "AnnealedDVAE", ""),
    ("factor-dvae", "categorical", "factor", "FactorDVAE", DVAE),
    ("tc-dvae", "categorical", "tc", "TC-DVAE", ""),
    ("dip-dvae-i", "categorical", "dip-i", "DIP-DVAE-I", ""),
    ("dip-dvae-ii", "categorical", "dip-ii", "DIP-DVAE-II", ""),
    ("qvae", "codebook", "elbo", "QVAE", "Baykal et al. 2024"),
    ("factor-qvae", "codebook", "factor", "FactorQVAE", "Baykal et al. 2024"),
    ("fsq-ae", "fsq", "autoencoder", "FSQ-AE", "Mentzer et al. 2024"),
    ("qlae", "quantised", "autoencoder", "QLAE", "Hsu et al. 2023"),
    ("tripod", "fsq", "tripod", "Tripod", "Hsu et al. 2024"),
    ("vq-vae", "vector_quantised", "autoencoder", "VQ-VAE", "van den Oord et al. 2017"),
    ("one-hot-vae", "one_hot", "elbo", "One-hot VAE", "Jang et al. 2017"),
    ("von-mises-vae", "von_mises", "elbo", "von Mises VAE", ""),
    ("ada-gvae", "gaussian", "ada_gvae", "Ada-GVAE", "Locatello et al. 2020"),
    ("ada-ml-vae", "gaussian", "ml_vae", "Ada-ML-VAE", "Locatello et al. 2020"),
    ("ada-dvae", "categorical", "ada_gvae", "Ada-DVAE", ""),
    ("ada-ml-dvae", "categorical", "ml_vae", "Ada-ML-DVAE", ""),
):
    models.register(_name)(Model(_latent, _objective, _title, _paper, UNLIKE.get(_name, "")))
