"""Weak supervision by pairs of images: Ada-GVAE and Ada-ML-VAE (Locatello et al. 2020), and both for tables."""

from __future__ import annotations

from typing import Annotated

from lddr.latents.latent import Posterior
from lddr.objectives.elbo import Beta, KlFactor
from lddr.parts import objectives
from lddr.settings import Setting


@objectives.register("ada_gvae")
class AdaGVAE(Beta):
    """β · KL, where the two images of a pair share the posteriors of latents that differ little (Ada-GVAE).

    Images i and i + batch / 2 are a pair. A latent is shared if KL(posterior of the first ‖ posterior of the second) is
    below the midpoint between the smallest and the largest KL of the pair's latents: the two bins of equal width in the
    authors' code. Gaussian posteriors are shared as the average of their means and of their variances.

    Categorical posteriors are shared as the average of their probabilities. This is the mixture of both tables, which
    keeps a category that either image needs; the average of logits would all but exclude a category that one of the
    encoders has ruled out, as multiplied Gaussians do (`MLVAE`).

    In your own loop, call the VAE with `share=objective.share`.

    Examples
    --------
    >>> import lddr, torch
    >>> latent, objective = lddr.latents.Gaussian(num_latents=2), lddr.objectives.AdaGVAE()
    >>> outputs = torch.tensor([[1.0, 0.0, 3.0, 0.0], [1.2, 0.0, -3.0, 0.0]])  # mean, log variance, …
    >>> objective.share(latent(outputs)).mean.tolist()  # the first latent is shared, the second is not
    [[1.100000023841858, 3.0], [1.100000023841858, -3.0]]
    """

    needs_pairs = True
    multiplies = False

    def __init__(
        self,
        beta: KlFactor = 1.0,
        pairs: Annotated[
            str,
            Setting(
                "Pairs of images to train on: how many factors differ in a pair, random, or a .csv file with the names "
                "or numbers of two images in each row."
            ),
        ] = "1",
    ) -> None:
        super().__init__(beta)
        self.pairs = pairs

    def share(self, posterior: Posterior) -> Posterior:
        kl = posterior.pair_kl().detach()
        threshold = (kl.amin(1, keepdim=True) + kl.amax(1, keepdim=True)) / 2
        return posterior.pooled(kl < threshold, multiply=self.multiplies)


@objectives.register("ml_vae")
class MLVAE(AdaGVAE):
    """As `AdaGVAE`, with shared posteriors multiplied instead of averaged (Ada-ML-VAE).

    The product is the normalised geometric mean: of Gaussians, the average of precisions and of means weighted by
    precision, as in the authors' code; of tables, the average of log probabilities.
    """

    multiplies = True
