"""How much information about which factor each latent of a run has, as computed by its MIG."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lddr.errors import UserError
from lddr.metrics.metric import UndefinedError
from lddr.runs.folder import RunFolder

LEAST_SHARE = 0.2  # of a factor's entropy: with less information a latent is not named after it
DAMAGE = (UserError, ValueError, LookupError, TypeError, AttributeError, OverflowError)


@dataclass(frozen=True)
class Information:
    """The mutual information in nats between latents and factors, and the entropy of every factor."""

    factors: list[str]
    matrix: NDArray[np.float64]  # (latents, factors)
    entropies: NDArray[np.float64]  # (factors,)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of each factor's entropy that each latent has, (latents, factors); 0 for a constant factor."""
        return self.matrix / np.where(self.entropies > 0, self.entropies, np.inf)

    def label(self, latent: int) -> tuple[str, float] | None:
        """Return the factor that this latent shares most information with, and its share; None if it is small."""
        shares = self.shares[latent]
        best = int(shares.argmax())
        return (self.factors[best], float(shares[best])) if shares[best] >= LEAST_SHARE else None

    def as_dict(self) -> dict[str, Any]:
        return {"factors": self.factors, "matrix": self.matrix.tolist(), "shares": self.shares.tolist()}


def information_of(folder: Path) -> Information:
    """Return the information of a run; raise UndefinedError with the reason if there is none."""
    files = RunFolder(folder)
    entry = files.metrics.get("mig", {})
    reason = entry.get("reason") if entry.get("score", 0) is None else None
    with suppress(UserError):
        if files.images.get("factors") == {}:
            reason = "its images have no factors"
    if reason:
        raise UndefinedError(f"{folder.name} has no mutual information with factors: {reason}")
    with suppress(*DAMAGE):
        names = [name for name in files.images["factors"] if name not in entry.get("factors_left_out", {})]
        matrix = np.nan_to_num(np.array(entry["mutual_information"], np.float64))
        entropies = np.nan_to_num(np.array(entry["entropies"], np.float64))
        if names and matrix.ndim == 2 and matrix.shape[1:] == entropies.shape == (len(names),):
            return Information(names, matrix, entropies)
    cure = "get it with: lddr evaluate RUN --metrics mig"
    raise UndefinedError(f"{folder.name} has no mutual information with factors; {cure}")
