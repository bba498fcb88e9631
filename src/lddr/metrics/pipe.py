"""PIPE: can a network classify reconstructions and decodings of independent latents? (Estermann & Wattenhofer 2023)."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from lddr.data.dataset import Dataset, as_floats, stream
from lddr.metrics.metric import Count, Positive, Progress, Result, metric, reporting

if TYPE_CHECKING:
    from torch import Tensor, nn

    from lddr.trained import Trained

CHANNELS, LAST = (32, 32, 64, 64), 512  # of the judge's convolutions
BETAS = (0.9, 0.999)  # of its Adam
CHUNK = 500  # images that are encoded at once, and tested


@dataclass(frozen=True)
class PipeResult(Result):
    """2 · (1 - accuracy), at most 1 for an accuracy of chance: latents can then be sampled independently."""

    accuracy: float  # on images that the judge was not trained on


@metric("pipe", "PIPE", seconds=100)
def pipe(
    trained: "Trained",
    dataset: Dataset,
    seed: int,
    train: Count = 50_000,
    test: Count = 50_000,
    batch_size: Count = 32,
    learning_rate: Positive = 1e-4,
    apart: Literal["uniform", "marginals"] = "uniform",
    judge: Literal["published"] = "published",  # recorded with the score: older versions had a smaller one
    progress: Progress | None = None,
) -> PipeResult:
    """How little decodings of independently drawn latents differ from reconstructions: 2 · (1 - accuracy).

    A network, the judge, is trained to classify them, half of each, and tested on others. It is the authors': five
    convolutions with batch normalisation. "uniform" draws each latent from the range of its codes, as published;
    "marginals" takes it from the code of another image. No labels are needed.

    Parameters
    ----------
    trained, dataset : Trained, Dataset
        The model, and the images that it is scored with.
    seed : int
        Decides which images are sampled.
    train, test : int
        Images that the judge is trained and tested on.
    batch_size, learning_rate : int, float
        Of its training.
    apart : {"uniform", "marginals"}
        How independent latents are drawn.
    judge : {"published"}
        The network.
    progress : callable, optional
        Called with the share of the work that has just been finished.

    Returns
    -------
    PipeResult
        The score, and the `accuracy` of the judge.

    Examples
    --------
    >>> import lddr
    >>> trained = lddr.Trained.load("circles-dvae")
    >>> 0 <= lddr.metrics.pipe(trained, lddr.load_dataset("circles", 32), 0, train=64, test=64).score <= 1
    True
    """
    from torch.nn.functional import softplus

    from lddr.training.adam import Adam

    half = max(batch_size // 2, 2)
    learned, tested = half * max(1, round(train / (2 * half))), max(1, round(test / 2))
    total = learned + tested
    codes, others = _codes(trained, dataset, seed, total, apart)
    network = judge_network(trained, seed)
    optimizer = Adam(network.parameters(), learning_rate, BETAS)
    starts = range(0, learned, half)
    for first in reporting(starts, [half / total] * len(starts), progress):
        optimizer.zero_grad()
        ours, theirs = _judged(network, trained, codes, others, slice(first, first + half))
        ((softplus(-ours) + softplus(theirs)).mean() / 2).backward()
        optimizer.step()
    right = 0.0
    network.eval()
    tests = [slice(first, min(first + CHUNK, total)) for first in range(learned, total, CHUNK)]
    for here in reporting(tests, [(here.stop - here.start) / total for here in tests], progress):
        ours, theirs = _judged(network, trained, codes, others, here)
        for logits in (ours, -theirs):  # positive where the judge is right; a logit of 0 counts half
            right += float((logits > 0).sum()) + float((logits == 0).sum()) / 2
    accuracy = right / (2 * tested)
    return PipeResult(min(1.0, 2 * (1 - accuracy)), accuracy)


def _codes(trained: "Trained", dataset: Dataset, seed: int, count: int, apart: str) -> "tuple[Tensor, Tensor]":
    """Return the codes of sampled images, and codes each latent of which is drawn independently: (count, latents)."""
    import torch

    from lddr import losses
    from lddr.training.batches import as_tensor, torch_stream

    parts = []
    with torch.no_grad():
        for number, first in enumerate(range(0, count, CHUNK)):
            drawn = dataset.draw(stream(seed, "pipe", number), min(CHUNK, count - first))
            parts.append(trained.vae.encode(as_tensor(as_floats(drawn), trained.device)).mean)
    codes, generator = torch.cat(parts), torch_stream(seed, "pipe codes")
    if apart == "marginals":
        order = losses.permutations((len(codes), codes.shape[1]), generator)
        return codes, losses.permute_latents(codes, order.to(codes.device))
    low, high = codes.amin(0), codes.amax(0)
    return codes, low + (high - low) * torch.rand(codes.shape, generator=generator).to(codes.device)


def judge_network(trained: "Trained", seed: int) -> "nn.Module":
    """Images → logits, the larger the more an image is taken for a reconstruction.

    The authors' network for 64x64: four convolutions of stride 2, and one whose kernel covers the 4x4 that are left; it
    covers what is left of other sizes, too. Weights are initialised as in torch.
    """
    import torch
    from torch import nn

    from lddr.networks.coders import initialise
    from lddr.training.batches import torch_stream

    layers: list[nn.Module] = []
    for inputs, outputs in pairwise((trained.image_shape[2], *CHANNELS)):
        layers += [nn.Conv2d(inputs, outputs, 4, stride=2, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
    left = trained.image_shape[0] // 2 ** len(CHANNELS)
    layers += [nn.Conv2d(CHANNELS[-1], LAST, left), nn.BatchNorm2d(LAST), nn.ReLU(), nn.Conv2d(LAST, 1, 1)]
    network = nn.Sequential(*layers, nn.Flatten(0)).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    initialise(network, torch_stream(seed, "pipe judge"), "uniform")
    return network.to(trained.device)


def _judged(
    network: "nn.Module", trained: "Trained", codes: "Tensor", others: "Tensor", here: slice
) -> "tuple[Tensor, Tensor]":
    """Return the judge's logits of reconstructions, and of decodings of the other codes."""
    import torch

    with torch.no_grad():
        images = trained.vae.decode(trained.vae.latent.embed(torch.cat([codes[here], others[here]])))
    ours, theirs = network(images).chunk(2)
    return ours, theirs
