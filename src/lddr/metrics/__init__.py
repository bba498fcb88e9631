"""Scores of representations: pure functions of codes and factors, each with a small result whose `.score` counts."""

from lddr.metrics.correlation import learned_correlation as learned_correlation
from lddr.metrics.dci import dci as dci
from lddr.metrics.dci_es import dci_es as dci_es
from lddr.metrics.downstream import downstream as downstream
from lddr.metrics.elbo import elbo as elbo
from lddr.metrics.elbo import gap as gap
from lddr.metrics.evaluate import score_codes as score_codes
from lddr.metrics.interventions import beta_vae_score as beta_vae_score
from lddr.metrics.interventions import factor_vae_score as factor_vae_score
from lddr.metrics.interventions import irs as irs
from lddr.metrics.mig import mig as mig
from lddr.metrics.mig import mig_sup as mig_sup
from lddr.metrics.min_suf import min_suf as min_suf
from lddr.metrics.modularity import explicitness as explicitness
from lddr.metrics.modularity import infomec as infomec
from lddr.metrics.modularity import modularity as modularity
from lddr.metrics.neurons import nk as nk
from lddr.metrics.neurons import snc as snc
from lddr.metrics.pipe import pipe as pipe
from lddr.metrics.sap import sap as sap
from lddr.metrics.unsupervised import udr as udr
from lddr.metrics.unsupervised import unsupervised as unsupervised
