"""The correlation that a model learned: are factors correlated in its codes although they are not in the images?"""

import numpy as np
from numpy.typing import ArrayLike

from lddr.metrics.information import histogram_information
from lddr.statistics import spearman


def learned_correlation(codes: ArrayLike, factors: ArrayLike, first: int, second: int, num_bins: int = 20) -> float:
    """Absolute rank correlation of the latents that encode two factors, on images whose factors are independent.

    A model that was trained on correlated factors (`--correlate`, Träuble et al. 2021) may keep the correlation: 0 if
    each factor has a latent of its own that does not vary with the other factor, 1 if one latent encodes both.

    Parameters
    ----------
    codes, factors : array
        (samples, latents), and whole numbers (samples, factors), of images sampled without the correlation.
    first, second : int
        Columns of the two factors.
    num_bins : int
        Bins of the histogram by which the latent with the largest mutual information is found.

    Returns
    -------
    float
        From 0 to 1; NaN if no latent varies.

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import learned_correlation
    >>> x, y = np.random.default_rng(0).integers(10, size=(2, 5_000))
    >>> factors = np.stack([x, y], axis=1)
    >>> round(learned_correlation(factors * 0.5, factors, 0, 1), 1)
    0.0
    >>> mixed = np.stack([x + 0.5 * y, y + 0.5 * x], axis=1)
    >>> round(learned_correlation(mixed, factors, 0, 1), 1)
    0.8
    """
    values, _, information, _ = histogram_information(codes, factors, num_bins)
    one, other = (values[:, int(information[:, factor].argmax())] for factor in (first, second))
    return float(abs(np.asarray(spearman(one, other))))
