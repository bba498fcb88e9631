"""The rows of docs/parity.md: each number from the plain implementation and from ours, by the kind of the codes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from lddr import metrics as ours
from tests.metrics import published as plain
from tests.metrics.parity import tables

DLIB = "disentanglement_lib"
TABLES = tables.kept()


@dataclass(frozen=True)
class Row:
    """A number of a metric: whose definition it is, the plain one and ours by kind, and how far apart they may be."""

    metric: str
    title: str
    plain: Callable[[str], float]
    ours: Callable[[str], float]
    apart: float = 1e-9
    source: str = DLIB


def whole(function, part=None):
    """Of all rows of a kind's table; `part` is the place or the field of the number that is meant."""
    return lambda kind: picked(function(*TABLES[kind]), part)


def parted(function, part=None):
    """Of the rows to train on and those to test on."""
    return lambda kind: picked(function(*tables.parts(*TABLES[kind])), part)


def picked(found, part):
    if part is None:
        return found
    return getattr(found, part) if isinstance(part, str) else found[part]


def of(found, part):
    """A part of something that is worked out once for all its parts."""
    return lambda kind: picked(found(kind), part)


def logistic(*parts):
    return ours.downstream(*parts, sizes=(200,))


def boosting(*parts):
    return ours.downstream(*parts, learner="boosting", sizes=(200,))


def plain_infomec(kind):
    return plain.infomec(*TABLES[kind], kind == "discrete")


def our_infomec(kind):
    return ours.infomec(*TABLES[kind], estimator="categories" if kind == "discrete" else "neighbours")


DCI, OUR_DCI = cache(parted(plain.dci)), cache(parted(ours.dci))
INFOMEC, OUR_INFOMEC = cache(plain_infomec), cache(our_infomec)
HSU, FAST = "Hsu et al. 2023", partial(ours.dci, estimator="fast")
MIN_SUF, MAHON = cache(whole(plain.min_suf)), "Mahon et al. 2024"
FORESTS = partial(ours.dci_es, probe="trees", depths=(1, 2, 4, 8), trees=10)
ALL_LATENTS = partial(ours.unsupervised, active_variance=0)
TABLE = [
    Row("mig", "MIG", whole(plain.mig), whole(ours.mig, "score")),
    Row("mig_sup", "MIG-sup", whole(plain.mig_sup), whole(ours.mig_sup, "score"), source="Li et al. 2020"),
    Row("modularity", "Modularity", whole(plain.modularity), whole(ours.modularity, "score")),
    Row(
        "explicitness", "Explicitness, as an area", parted(plain.explicitness), parted(ours.explicitness, "area"), 1e-6
    ),
    Row("sap", "SAP", parted(plain.sap), parted(ours.sap, "score")),
    Row("dci", "DCI, disentanglement", of(DCI, 0), of(OUR_DCI, "score"), 1e-6),
    Row("dci", "DCI, completeness", of(DCI, 1), of(OUR_DCI, "completeness"), 1e-6),
    Row("dci", "DCI, informativeness", of(DCI, 2), of(OUR_DCI, "informativeness"), 1e-6),
    Row("dci", "DCI, disentanglement, `--dci fast`", of(DCI, 0), parted(FAST, "score"), 0.02),
    Row(
        "downstream_logistic",
        "Logistic regression, 200 labels",
        parted(partial(plain.downstream, plain.logistic)),
        parted(logistic, "score"),
    ),
    Row(
        "downstream_boosting",
        "Gradient boosting, 200 labels",
        parted(partial(plain.downstream, plain.boosting)),
        parted(boosting, "score"),
    ),
    Row("infomec", "InfoM", of(INFOMEC, 0), of(OUR_INFOMEC, "score"), 1e-4, HSU),
    Row("infomec", "InfoC", of(INFOMEC, 1), of(OUR_INFOMEC, "infoc"), 1e-4, HSU),
    Row("infomec", "InfoE", of(INFOMEC, 2), of(OUR_INFOMEC, "infoe"), 1e-4, HSU),
    Row("min_suf", "Minimality", of(MIN_SUF, 0), whole(ours.min_suf, "minimality"), source="Almudévar & Ortega 2025"),
    Row("min_suf", "Sufficiency", of(MIN_SUF, 1), whole(ours.min_suf, "sufficiency"), source="Almudévar & Ortega 2025"),
    Row("snc", "Single-neuron classification", parted(plain.snc), parted(ours.snc, "score"), source=MAHON),
    Row("nk", "Neuron knockout", parted(plain.nk), parted(ours.nk, "score"), 0.02, MAHON),
    Row(
        "dci_es",
        "DCI-ES, explicitness of forests",
        parted(plain.explicitness_of_forests),
        parted(FORESTS, "score"),
        1e-3,
        "Eastwood et al. 2023",
    ),
    Row("irs", "IRS of these rows", whole(plain.irs), whole(lambda c, f: ours.irs([c] * 3, list(f.T)).score), 0.01),
    Row(
        "unsupervised",
        "Total correlation of all latents",
        whole(lambda c, f: plain.total_correlation(c)),
        whole(lambda c, f: ALL_LATENTS(c).score),
        1e-6,
    ),
    Row(
        "unsupervised",
        "Wasserstein correlation",
        whole(lambda c, f: plain.wasserstein_correlation(c)),
        whole(lambda c, f: ours.unsupervised(c).wasserstein_correlation),
        1e-6,
    ),
]
SLOW = ("dci", "infomec", "snc", "dci_es")  # computed for one table in tests
SLOWEST = ("downstream_logistic", "downstream_boosting", "nk")  # which have a naive implementation in their own tests
