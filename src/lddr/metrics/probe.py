"""What a fitted classifier says of the factors: the pieces that explicitness and InfoE share."""

import warnings
from typing import Any

import numpy as np

from lddr.metrics.information import Floats, Whole


def standardised(train: Floats, test: Floats) -> tuple[Floats, Floats]:
    """Both samples, with mean 0 and variance 1 in the first; what is constant there becomes 0 there."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(test)


def probabilities(
    model: Any,  # a classifier of scikit-learn
    train: Any,  # (samples, columns), sparse or not
    factor: Whole,
    test: Any,
    values: Whole,
) -> Floats:
    """(samples of `test`, values): what a fitted model gives every value; 0 for a value it never saw."""
    from sklearn.exceptions import ConvergenceWarning

    seen = np.unique(factor)
    found = np.ones((test.shape[0], 1))  # a model of one value has no choice
    if len(seen) > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the number of iterations is a setting
            found = model.fit(train, factor).predict_proba(test)
    place = np.searchsorted(seen, values).clip(max=len(seen) - 1)
    return np.where(seen[place] == values, found[:, place], 0.0)
