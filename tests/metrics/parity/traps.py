"""What other packages do, and what it does to a score: what, where, score, codes, the published way, the other."""

from functools import partial

import numpy as np

from tests.metrics import published as plain
from tests.metrics.parity import tables
from tests.metrics.parity.rows import DCI, of, parted, whole


def equally_filled(code, bins=20):
    return np.digitize(code, np.quantile(code, np.linspace(0, 1, bins + 1)[1:-1]))


def reshaped(codes):
    return codes.T.reshape(codes.shape)


def forest(codes, factors):
    from sklearn.ensemble import RandomForestClassifier

    train, truth = tables.parts(codes, factors)[:2]
    models = [RandomForestClassifier(random_state=0).fit(train, labels) for labels in truth.T]
    return plain.concentration(np.array([model.feature_importances_ for model in models]).T)


def squared_correlation_gap(codes, factors):
    return np.mean(plain.gaps_of(np.corrcoef(codes.T, factors.T)[: codes.shape[1], codes.shape[1] :] ** 2))


def with_a_faint_copy(codes, factors):
    return plain.total_correlation(np.concatenate([codes, 0.01 * codes[:, :1] + 1e-4 * codes[:, 1:2]], axis=1))


def in_ten_bins(codes, factors):
    return plain.mig(codes, factors, partial(plain.bins_of, bins=10))


def on_training_rows(train, truth, test, asked):
    return plain.dci(train, truth, train, truth)[2]


TRAPS = [
    (
        "Edges of histograms in 64 bits, for codes of 32 bits that lie on them",
        "disentangling-correlated-factors",
        *("MIG", "discrete", whole(plain.mig), whole(lambda c, f: plain.mig(c.astype(np.float64), f))),
    ),
    (
        "10 bins, not 20",
        "disentangling-correlated-factors (a setting)",
        "MIG",
        "noisy",
        whole(plain.mig),
        whole(in_ten_bins),
    ),
    (
        "Bins that are equally filled, not equally wide",
        "–",
        *("MIG", "discrete", whole(plain.mig), whole(lambda c, f: plain.mig(c, f, equally_filled))),
    ),
    (
        "300 rows, not 10 000, so that noise seems to tell something",
        "disent's fast SAP has 2 000",
        *("Modularity", "perfect", lambda kind: plain.modularity(*tables.drawn(kind, 10_000)), whole(plain.modularity)),
    ),
    (
        "Codes (latents, samples) reshaped where they should be transposed",
        "reported of a peer",
        *("MIG", "perfect", whole(plain.mig), whole(lambda c, f: plain.mig(reshaped(c), f))),
    ),
    (
        "Accuracy on the rows that were trained on",
        "DisentanglementMetrics",
        *("DCI, informativeness", "noisy", of(DCI, 2), parted(on_training_rows)),
    ),
    (
        "Importances of a random forest, not of boosted trees",
        "disentangling-correlated-factors (a setting), DisentanglementMetrics",
        *("DCI, disentanglement", "noisy", of(DCI, 0), whole(forest)),
    ),
    (
        "Boosted trees with another seed",
        "disent, disentangling-correlated-factors: none is set",
        *("DCI, disentanglement", "noisy", of(DCI, 0), parted(partial(plain.dci, seed=1), 0)),
    ),
    (
        "Squared correlations (factors taken as continuous), not classifiers",
        "disent (a setting)",
        *("SAP", "perfect", parted(plain.sap), whole(squared_correlation_gap)),
    ),
    (
        "2 · area - 1, as here, where the area itself is published",
        "lddr",
        *("Explicitness", "noisy", parted(plain.explicitness), lambda kind: 2 * parted(plain.explicitness)(kind) - 1),
    ),
    (
        "Values of a factor weighed by how often they occur, as here, not alike",
        "lddr",
        *("IRS", "discrete", whole(plain.irs), whole(partial(plain.irs, weighted=True))),
    ),
    (
        "The largest deviation, as in the paper, not the published code's 0.99 quantile",
        "the paper of IRS",
        *("IRS", "noisy", whole(plain.irs), whole(partial(plain.irs, quantile=1.0))),
    ),
    (
        "Active latents only, as here, not all: a faint copy of a latent was added",
        "lddr",
        *("Total correlation", "noisy", whole(with_a_faint_copy), whole(lambda c, f: plain.total_correlation(c))),
    ),
]
