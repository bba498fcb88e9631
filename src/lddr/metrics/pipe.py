"""PIPE: can a network tell reconstructions from pictures of latents that were drawn apart? (Estermann et al. 2023)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lddr.data.dataset import Dataset, as_floats, stream
from lddr.metrics.metric import Result, Tell, metric
from lddr.metrics.signature import Count, Positive

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from lddr.networks.coders import Encoder
    from lddr.trained import Trained

RANGE_FROM = 1_000  # images that tell where codes are
WIDTH = 8  # of the network that judges
BETAS = (0.9, 0.999)  # of its Adam


@dataclass(frozen=True)
class PipeResult(Result):
    """2 · (1 - accuracy), at most 1: nobody can tell them apart, so that latents may be chosen one by one."""

    accuracy: float  # on pictures that were not trained with


@metric("pipe", "PIPE", seconds=200)
def pipe(
    trained: "Trained",
    dataset: Dataset,
    seed: int,
    train: Count = 50_000,
    test: Count = 50_000,
    batch_size: Count = 32,
    learning_rate: Positive = 1e-4,
    apart: Literal["uniform", "marginals"] = "uniform",
    told: Tell | None = None,
) -> PipeResult:
    """How little pictures of codes whose latents are drawn apart differ from reconstructions: 2 · (1 - accuracy).

    A small network is trained on both kinds, half of each, and tested on others. "uniform" draws a latent from the
    range of its codes, as published; "marginals" takes it from the code of another image. No labels are needed.
    """
    from lddr.training.adam import Adam

    game = _Game(trained, dataset, seed, apart, max(batch_size // 2, 2))
    judge = game.judge()
    optimizer = Adam(judge.parameters(), learning_rate, BETAS)
    rounds, trials = (max(1, round(count / (2 * game.half))) for count in (train, test))
    for number in range(rounds):
        optimizer.forget_gradients()
        game.loss(judge, number).backward()
        optimizer.step()
        if told is not None:
            told(1 / (rounds + trials))
    right = 0.0
    for number in range(rounds, rounds + trials):
        right += game.right(judge, number)
        if told is not None:
            told(1 / (rounds + trials))
    accuracy = right / (2 * game.half * trials)
    return PipeResult(min(1.0, 2 * (1 - accuracy)), accuracy=accuracy)


class _Game:
    """Pictures of both kinds for a judge; each round is a function of the seed and its number."""

    def __init__(self, trained: "Trained", dataset: Dataset, seed: int, apart: str, half: int) -> None:
        self.trained, self.dataset, self.seed, self.half = trained, dataset, seed, half
        self.is_uniform = apart == "uniform"
        codes = self._codes(-1, RANGE_FROM)
        self.low, self.high = codes.amin(0), codes.amax(0)

    def judge(self) -> "Encoder":
        """Convolutions to one logit, the larger the more it takes a picture for a reconstruction."""
        from lddr.networks.coders import Encoder, initialise

        network = Encoder(self.trained.image_shape, 1, WIDTH)
        initialise(network, self._stream("pipe judge"), "uniform")
        return network.to(self.trained.device)

    def loss(self, judge: "Encoder", number: int) -> "Tensor":
        from torch.nn.functional import softplus

        ours, others = judge(self._pictures(number)).chunk(2)
        return (softplus(-ours) + softplus(others)).mean() / 2

    def right(self, judge: "Encoder", number: int) -> float:
        """How many pictures of a round the judge takes for what they are; one it cannot tell counts half."""
        import torch

        with torch.no_grad():
            ours, others = judge(self._pictures(number)).chunk(2)
        return sum(float((kind > 0).sum()) + float((kind == 0).sum()) / 2 for kind in (ours, -others))

    def _pictures(self, number: int) -> "Tensor":
        """Reconstructions, then pictures of codes drawn apart."""
        import torch

        codes = self._codes(number, self.half)
        with torch.no_grad():
            return self.trained.vae.decoder(torch.cat([codes, self._apart(codes, number)])).sigmoid()

    def _apart(self, codes: "Tensor", number: int) -> "Tensor":
        import torch

        from lddr import terms

        generator = self._stream("pipe codes", number)
        if not self.is_uniform:
            return terms.permute_latents(
                codes, terms.permutations((len(codes), codes.shape[1]), generator).to(codes.device)
            )
        share = torch.rand(codes.shape, generator=generator).to(codes.device)
        return self.low + (self.high - self.low) * share

    def _codes(self, number: int, count: int) -> "Tensor":
        """What the decoder sees of images at test time."""
        import torch

        from lddr.training.feed import as_tensor

        drawn = self.dataset.draw(stream(self.seed, "pipe", number + 1), count)
        with torch.no_grad():
            return self.trained.vae.encode(as_tensor(as_floats(drawn), self.trained.device)).z

    def _stream(self, *purpose: str | int) -> "torch.Generator":
        from lddr.training.draws import torch_stream

        return torch_stream(self.seed, *purpose)  # type: ignore[arg-type]
