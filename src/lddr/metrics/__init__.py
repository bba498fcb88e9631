"""Scores of representations: pure functions of codes and factors, each with a small result whose `.score` counts."""

from lddr.metrics.beta_vae import beta_vae_score
from lddr.metrics.dci import dci
from lddr.metrics.downstream import downstream
from lddr.metrics.factor_vae import factor_vae_score
from lddr.metrics.infomec import infomec
from lddr.metrics.irs import irs
from lddr.metrics.mig import mig
from lddr.metrics.mig_sup import mig_sup
from lddr.metrics.modularity import explicitness, modularity
from lddr.metrics.sap import sap
from lddr.metrics.score import score_codes
from lddr.metrics.udr import udr
from lddr.metrics.unsupervised import unsupervised

__all__ = [
    "beta_vae_score",
    "dci",
    "downstream",
    "explicitness",
    "factor_vae_score",
    "infomec",
    "irs",
    "mig",
    "mig_sup",
    "modularity",
    "sap",
    "score_codes",
    "udr",
    "unsupervised",
]
