"""An ensemble of small neural networks (Lakshminarayanan, Pritzel and Blundell, NeurIPS 2017)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from archgym.proxy.models.base import Features, Layout, Options
from archgym.proxy.models.ensemble import Ensemble, batches, descend, first_arrays, n_steps

if TYPE_CHECKING:
    import torch

_AXES = ("features", "width0", "width1", "width2", "targets")
_LAYERS = 4


class Networks(Ensemble):
    """Fully connected networks with three hidden layers, one output a target.

    Settings: ``members`` (3), ``width`` (160), ``epochs`` (300, but by default within 2,000 to
    12,000 steps), ``rate`` (0.003), ``decay`` (0.3), ``device`` (``cpu``).
    """

    kind = "mlp"
    layout: ClassVar[Layout] = {
        f"weights{i}": (np.float32, f"members {axes[0]} {axes[1]}")
        for i, axes in enumerate(pairwise(_AXES))
    } | {f"biases{i}": (np.float32, f"members {axis}") for i, axis in enumerate(_AXES[1:])}
    residual = False

    @classmethod
    def train(
        cls, x: torch.Tensor, z: torch.Tensor, generator: torch.Generator, settings: Options
    ) -> list[torch.Tensor]:
        """AdamW with one cycle of the learning rate."""
        import torch

        members, width = int(settings.get("members", 3)), int(settings.get("width", 160))
        arrays = first_arrays(
            [
                ((members, inputs, outputs), ((2.0 if outputs == width else 1.0) / inputs) ** 0.5)
                for inputs, outputs in pairwise([x.shape[1], width, width, width, z.shape[1]])
            ],
            *(generator, x.device),
        )
        weights, biases = arrays[::2], arrays[1::2]
        steps, batch = n_steps(settings, len(x), 128, (2_000, 12_000))
        rate, decay = float(settings.get("rate", 3e-3)), float(settings.get("decay", 0.3))
        optimiser = torch.optim.AdamW(
            [{"params": weights, "weight_decay": decay}, {"params": biases, "weight_decay": 0.0}],
            lr=rate,
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, steps, pct_start=0.1)
        for rows in batches(x, batch, steps, members, generator):
            hidden = x[rows]
            for layer in range(_LAYERS):
                hidden = torch.baddbmm(biases[layer][:, None], hidden, weights[layer])
                if layer < _LAYERS - 1:
                    hidden = torch.relu(hidden)
            descend(optimiser, hidden, z[rows])
            schedule.step()
        return [*weights, *biases]

    def layers(self) -> list[tuple[Features, Features]]:
        """Weights and biases of each layer."""
        found = list(self.arrays().values())
        return list(zip(found[:_LAYERS], found[_LAYERS:], strict=True))

    def outputs(self, x: Features) -> Features:
        """What each member predicts, shape (members, n, n_targets)."""
        hidden: Any = x
        for layer, (weights, biases) in enumerate(self.layers()):
            hidden = np.matmul(hidden, weights)
            hidden += biases[:, None]
            if layer < _LAYERS - 1:
                np.maximum(hidden, np.float32(0.0), out=hidden)
        return np.asarray(hidden)
