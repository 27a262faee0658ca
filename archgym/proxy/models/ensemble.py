"""What the ensembles of neural networks share: training with PyTorch, prediction with NumPy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from archgym.proxy.models.base import Array, Features, Model, Options, one_thread

if TYPE_CHECKING:
    import torch

_CHUNK = 512
"""Designs whose activations stay in the processor's cache."""


class Ensemble(Model):
    """Networks that see all data; they differ in first weights and in the order of the data.

    Trained with PyTorch on one thread, so that the same seed gives the same weights, or on a GPU;
    predictions need NumPy only.

    Attributes:
        residual: whether layers but the last add to what they get (SiLU), or replace it (ReLU).
    """

    residual: ClassVar[bool]

    @classmethod
    def fit(cls, x: Features, z: Array, seed: int, settings: Options) -> Self:
        """Networks of some data; the settings stand in the description of the class."""
        import torch

        device = torch.device(str(settings.get("device", "cpu")))
        own = [device] if device.type == "cuda" else []
        with one_thread(device.type), torch.random.fork_rng(own):
            torch.manual_seed(seed)
            trained = cls.train(
                torch.as_tensor(x, device=device),
                torch.as_tensor(z, dtype=torch.float32, device=device),
                *(torch.Generator().manual_seed(seed), settings),
            )
        arrays = [one.detach().cpu().numpy() for one in trained]
        return cls(dict(zip(cls.layout, arrays, strict=True)))

    @classmethod
    @abstractmethod
    def train(
        cls, x: torch.Tensor, z: torch.Tensor, generator: torch.Generator, settings: Options
    ) -> Sequence[torch.Tensor]:
        """The arrays of trained networks, in the order of :attr:`layout`."""

    def predict(self, x: Features) -> tuple[Array, Array]:
        """Mean of the members, and their standard deviation."""
        n, outputs = len(x), self.layers()[-1][1].shape[1]
        mean, spread = np.empty((n, outputs)), np.empty((n, outputs))
        for start in range(0, n, _CHUNK):
            part = slice(start, start + _CHUNK)
            members = self.outputs(x[part]).astype(np.float64)
            mean[part], spread[part] = members.mean(axis=0), members.std(axis=0)
        return mean, spread

    @abstractmethod
    def outputs(self, x: Features) -> Features:
        """What each member predicts, shape (members, n, n_targets)."""

    @abstractmethod
    def layers(self) -> list[tuple[Features, Features]]:
        """Weights (members, inputs, outputs) and biases (members, outputs) of each layer."""


def first_arrays(
    shapes: list[tuple[tuple[int, ...], float]],
    generator: torch.Generator,
    device: torch.device,
) -> list[torch.Tensor]:
    """First weights, of a shape and a standard deviation each, followed by biases of zero."""
    import torch

    arrays = []
    for shape, scale in shapes:
        weights = torch.randn(*shape, generator=generator) * scale
        arrays += [weights, torch.zeros(*shape[:-2], shape[-1])]
    return [one.to(device).requires_grad_() for one in arrays]


def n_steps(settings: Options, n: int, batch: int, limits: tuple[int, int]) -> tuple[int, int]:
    """Number of steps of gradient descent, and number of designs in a step.

    Args:
        settings: with ``epochs`` as often as the data are seen; else 300 times, within the limits.
        n: designs in the data.
        batch: maximum number of designs in a step.
        limits: minimum and maximum number of steps by default.
    """
    epochs, batch = settings.get("epochs"), min(batch, n)
    steps = int(int(epochs or 300) * n / batch)
    return int(np.clip(steps, *limits)) if epochs is None else max(steps, 10), batch


def batches(
    x: torch.Tensor, batch: int, steps: int, members: int, generator: torch.Generator
) -> Iterator[torch.Tensor]:
    """Rows of each step, shape (members, batch), on the device of the data."""
    import torch

    orders: list[torch.Tensor] = []
    for _ in range(steps):
        if not orders:
            mixed = torch.stack(
                [torch.randperm(len(x), generator=generator) for _ in range(members)]
            )
            whole = mixed[:, : len(x) // batch * batch].to(x.device)
            orders = list(whole.reshape(members, -1, batch).unbind(dim=1))
        yield orders.pop()


def descend(optimiser: torch.optim.Optimizer, found: torch.Tensor, z: torch.Tensor) -> None:
    """A step on a loss that outliers do not dominate."""
    import torch

    # The sum over members: none gets a smaller step since there are others.
    loss = torch.nn.functional.smooth_l1_loss(found, z, beta=0.1) * len(found)
    optimiser.zero_grad(set_to_none=False)
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
