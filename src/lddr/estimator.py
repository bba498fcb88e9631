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
    """`fit` trains a model on images (count, height, width[, channels]); `transform` gives codes (count, latents).

    Every setting of `lddr train` is a keyword, for example num_latents=6, and can be searched for; `settings` takes
    them as one dictionary.
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
        for (
            name,
            value,
        ) in keywords.items():  # whether there are such settings is said by `fit`, as scikit-learn wants it
            setattr(self, name, value)

    @property
    def _keywords(self) -> dict[str, Any]:
        own = super().get_params(deep=False)
        given = {name: value for name, value in vars(self).items() if name not in own}
        return {name: value for name, value in given.items() if name == name.strip("_")}  # others are not the user's

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What it was made with, as scikit-learn asks for it."""
        return super().get_params(deep) | self._keywords

    def set_params(self, **params: Any) -> "DisentangledVAE":
        """Change some; a setting that was left out so far may come here, too."""
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def fit(self, X: Any, y: Any = None) -> "DisentangledVAE":  # noqa: N803 (scikit-learn's name)
        """Train on any images `lddr.train` takes; labels y, if given, are its `factors`, unless supervision=None."""
        settings = {"steps": self.steps, "seed": self.random_state} | (self.settings or {}) | self._keywords
        self.trained_: Trained = train(X, self.model, self.preset, machine=self.machine, factors=y, **settings)
        self.n_features_out_ = self.trained_.num_latents
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:  # noqa: N803
        """The codes of images, prepared as those of `fit` were."""
        check_is_fitted(self)
        return self.trained_.represent(X, resize=True)

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.float32]:  # noqa: N803
        """The images of codes."""
        check_is_fitted(self)
        return self.trained_.decode(as_array(X).astype(np.float32))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """latent0, latent1, …"""
        check_is_fitted(self)
        return np.array([f"latent{number}" for number in range(self.n_features_out_)], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags
