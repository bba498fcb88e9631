"""A scikit-learn estimator: images in, codes out, in a Pipeline or wherever a transformer fits."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from lddr.arrays import as_array
from lddr.trained import Trained, train


class DisentangledVAE(TransformerMixin, BaseEstimator):
    """A scikit-learn transformer from images (count, height, width[, channels]) to codes (count, latents).

    Parameters
    ----------
    model
        Name of the model.
    preset
        "quick", "standard" or "paper".
    steps
        Training steps; None for the preset's.
    random_state
        Seed of weights, batches and noise.
    settings
        Settings of `lddr train` as one dictionary.
    machine
        Device, threads and how to report progress: a `lddr.Machine`.
    **keywords
        Settings of `lddr train`, such as num_latents=6; a grid search can vary them.

    Examples
    --------
    >>> import lddr, numpy
    >>> images = numpy.random.default_rng(0).random((20, 16, 16))
    >>> machine = lddr.Machine("cpu", threads=1, quiet=True)
    >>> vae = lddr.DisentangledVAE("vae", steps=2, num_latents=3, mean_bias=False, machine=machine)
    >>> vae.fit_transform(images).shape
    (20, 3)
    """

    def __init__(
        self,
        model: str = "dvae",
        preset: str = "quick",
        steps: int | None = None,
        random_state: int = 0,
        settings: dict[str, Any] | None = None,
        machine: Any = None,
        **keywords: Any,
    ) -> None:
        self.model = model
        self.preset = preset
        self.steps = steps
        self.random_state = random_state
        self.settings = settings
        self.machine = machine
        for name, value in keywords.items():  # `fit` checks them, as scikit-learn asks
            setattr(self, name, value)

    @property
    def _keywords(self) -> dict[str, Any]:
        own = super().get_params(deep=False)
        given = vars(self).items()  # names with an underscore at an end are not the user's
        return {name: value for name, value in given if name not in own and name == name.strip("_")}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters, including settings given as keywords."""
        return super().get_params(deep) | self._keywords

    def set_params(self, **params: Any) -> "DisentangledVAE":
        """Change parameters; settings that were not given before are allowed, too."""
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def fit(self, X: Any, y: Any = None) -> "DisentangledVAE":  # noqa: N803 (scikit-learn's name)
        """Train on images that `lddr.train` takes; labels y, if given, are its `factors`, unless supervision=None."""
        settings = {"steps": self.steps, "seed": self.random_state} | (self.settings or {}) | self._keywords
        self.trained_: Trained = train(X, self.model, self.preset, machine=self.machine, factors=y, **settings)
        self.n_features_out_ = self.trained_.num_latents
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:  # noqa: N803
        """Return the codes of images, which are prepared as those of `fit` were."""
        check_is_fitted(self)
        return self.trained_.represent(X, resize=True)

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.float32]:  # noqa: N803
        """Return the images of codes."""
        check_is_fitted(self)
        return self.trained_.decode(as_array(X).astype(np.float32))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return latent0, latent1, …"""
        check_is_fitted(self)
        return np.array([f"latent{number}" for number in range(self.n_features_out_)], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags
