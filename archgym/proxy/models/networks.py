"""An ensemble of small neural networks (Lakshminarayanan, Pritzel and Blundell, NeurIPS 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError
from archgym.proxy.models.base import Array, Features, Model, checked, one_thread, training_steps

if TYPE_CHECKING:
    import torch

_LAYERS = 4
_BATCH = 128
_STEPS = (2_000, 12_000)
_CHUNK = 512
"""Designs whose activations stay in the processor's cache."""


class Networks(Model):
    """Fully connected networks with three hidden layers, one output a target.

    All members see all data; they differ in their first weights and in the order of the data.
    Trained with PyTorch on one thread, so that the same seed gives the same weights; predictions
    need NumPy only.
    """

    kind: ClassVar[str] = "mlp"

    def __init__(self, weights: list[Features], biases: list[Features]) -> None:
        """Weights (members, inputs, outputs) and biases (members, outputs) of each layer."""
        self.weights, self.biases = weights, biases

    @classmethod
    def fit(cls, x: Features, z: Array, seed: int, settings: Mapping[str, Any]) -> Networks:
        """Networks of some data.

        Settings: ``members`` (3), ``width`` (160), ``epochs`` (300, but by default within 2,000
        to 12,000 steps), ``rate`` (0.003), ``decay`` (0.3), ``device`` (``cpu``).
        """
        import torch

        device = torch.device(str(settings.get("device", "cpu")))
        members, width = int(settings.get("members", 3)), int(settings.get("width", 160))
        generator = torch.Generator().manual_seed(seed)
        sizes = [x.shape[1], width, width, width, z.shape[1]]
        weights, biases = [], []
        for inputs, outputs in pairwise(sizes):
            scale = (2.0 / inputs) ** 0.5 if outputs == width else (1.0 / inputs) ** 0.5
            start = torch.randn(members, inputs, outputs, generator=generator) * scale
            weights.append(start.to(device).requires_grad_())
            biases.append(torch.zeros(members, 1, outputs, device=device, requires_grad=True))
        with one_thread(device.type):
            _train(
                *(weights, biases),
                torch.as_tensor(x, device=device),
                torch.as_tensor(z, dtype=torch.float32, device=device),
                *(generator, settings),
            )
        return cls(
            [one.detach().cpu().numpy() for one in weights],
            [one.detach().cpu().numpy()[:, 0] for one in biases],
        )

    def predict(self, x: Features) -> tuple[Array, Array]:
        """Mean of the members, and their standard deviation."""
        n, outputs = len(x), self.biases[-1].shape[1]
        mean, spread = np.empty((n, outputs)), np.empty((n, outputs))
        for start in range(0, n, _CHUNK):
            part = slice(start, start + _CHUNK)
            hidden: Any = x[part]
            for layer, (weights, biases) in enumerate(zip(self.weights, self.biases, strict=True)):
                hidden = np.matmul(hidden, weights)
                hidden += biases[:, None]
                if layer < _LAYERS - 1:
                    np.maximum(hidden, np.float32(0.0), out=hidden)
            members = hidden.astype(np.float64)
            mean[part], spread[part] = members.mean(axis=0), members.std(axis=0)
        return mean, spread

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Weights and biases of each layer."""
        found = {f"weights{i}": one for i, one in enumerate(self.weights)}
        return {**found, **{f"biases{i}": one for i, one in enumerate(self.biases)}}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]], n_features: int, n_targets: int) -> Networks:
        """The inverse of :meth:`arrays`."""
        names = [f"{kind}{i}" for kind in ("weights", "biases") for i in range(_LAYERS)]
        found = checked(arrays, names, np.float32, "networks")
        weights, biases = found[:_LAYERS], found[_LAYERS:]
        inputs = n_features
        for one, bias in zip(weights, biases, strict=True):
            if one.ndim != 3 or one.shape[1] != inputs or bias.shape != (len(one), one.shape[2]):
                raise InvalidValueError("the arrays are no networks")
            inputs = one.shape[2]
        if inputs != n_targets or len({len(one) for one in weights}) != 1:
            raise InvalidValueError("the arrays are no networks of these targets")
        return cls(weights, biases)


def _train(
    weights: list[torch.Tensor],
    biases: list[torch.Tensor],
    x: torch.Tensor,
    z: torch.Tensor,
    generator: torch.Generator,
    settings: Mapping[str, Any],
) -> None:
    """AdamW with one cycle of the learning rate, on a loss that outliers do not dominate."""
    import torch

    members, n = len(weights[0]), len(x)
    batch = min(_BATCH, n)
    steps = training_steps(settings, n, batch, _STEPS)
    rate, decay = float(settings.get("rate", 3e-3)), float(settings.get("decay", 0.3))
    optimiser = torch.optim.AdamW(
        [{"params": weights, "weight_decay": decay}, {"params": biases, "weight_decay": 0.0}],
        lr=rate,
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, steps, pct_start=0.1)
    orders: list[torch.Tensor] = []
    for _ in range(steps):
        if not orders:
            mixed = torch.stack([torch.randperm(n, generator=generator) for _ in range(members)])
            orders = [mixed[:, at : at + batch] for at in range(0, n - batch + 1, batch)]
        rows = orders.pop().to(x.device)
        hidden = x[rows]
        for layer in range(_LAYERS):
            hidden = torch.baddbmm(biases[layer], hidden, weights[layer])
            if layer < _LAYERS - 1:
                hidden = torch.relu(hidden)
        # The sum over members: none gets a smaller step since there are others.
        loss = torch.nn.functional.smooth_l1_loss(hidden, z[rows], beta=0.1) * members
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
