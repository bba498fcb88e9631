"""Masks that are moved by whole pixels: kept once on a padded canvas, cut out as windows."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from lddr.data.dataset import Images
from lddr.data.factors import Indices


class Stamps:
    """Pictures of one size, each a window of a larger canvas: another position is another window, not another mask."""

    def __init__(self, canvases: NDArray[np.uint8], size: int) -> None:
        self._windows = sliding_window_view(canvases, (size, size), axis=(1, 2))  # (masks, tops, lefts, size, size)

    def images(self, masks: Indices, tops: Indices, lefts: Indices) -> Images:
        """The windows with these upper left corners: three (count,) → (count, size, size, 1)."""
        return self._windows[masks, tops, lefts][..., np.newaxis]
