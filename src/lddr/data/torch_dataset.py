"""Datasets of lddr for PyTorch's `DataLoader`."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils import data

from lddr.data.dataset import Dataset, as_floats

Item = tuple[Tensor, Tensor]


class TorchDataset(data.Dataset[Item]):
    """(image, factors): floats in [0, 1] of shape (channels, height, width), and int64 of shape (factors,)."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Item:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Item]:
        """Return a batch at once, for a `DataLoader`."""
        images, factors = self.dataset[indices]
        floats = torch.from_numpy(as_floats(images).transpose(0, 3, 1, 2).copy())
        return list(zip(floats, torch.from_numpy(factors), strict=True))
