"""An ensemble of deep residual networks: slower to train, best with many designs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from archgym.errors import InvalidValueError
from archgym.proxy.models.base import Arrays, Features, Layout, Options
from archgym.proxy.models.ensemble import Ensemble, batches, descend, first_arrays, n_steps

if TYPE_CHECKING:
    import torch

_WARM, _DROPPED = 0.05, 0.9
"""Shares of the steps in which the learning rate rises, and in which units are dropped."""


class ResidualNetworks(Ensemble):
    """Networks of equal layers, each of which adds to what it gets (He and others, CVPR 2016).

    A first layer is followed by layers that add a product with the SiLU of their input to it, and
    a last one. Units are dropped at random (Srivastava and others, JMLR 2014), ever fewer and at
    last none, so that what is flat in the data is flat in the end.

    Settings: ``members`` (2), ``width`` (208), ``layers`` (8) between the first and the last,
    ``epochs`` (300, but by default within 2,000 to 15,000 steps), ``rate`` (0.002), ``decay``
    (0.1), ``dropout`` (0.1, below 1), ``device`` (``cpu``).
    """

    kind = "residual"
    layout: ClassVar[Layout] = {
        "first": (np.float32, "members features width"),
        "first_bias": (np.float32, "members width"),
        "inner": (np.float32, "layers members width width"),
        "inner_bias": (np.float32, "layers members width"),
        "last": (np.float32, "members width targets"),
        "last_bias": (np.float32, "members targets"),
    }
    residual = True

    def __init__(self, arrays: Arrays) -> None:
        super().__init__(arrays)
        # Predictions hold half of what the layers add up: see _silu_of_half.
        self._halved = [one * np.float32(0.5) for one in list(arrays.values())[:4]]

    @classmethod
    def train(
        cls, x: torch.Tensor, z: torch.Tensor, generator: torch.Generator, settings: Options
    ) -> list[torch.Tensor]:
        """AdamW; the rate falls by half a cosine.

        Raises:
            InvalidValueError: if a share of 1 or more is to be dropped.
        """
        import torch

        rate, dropout = float(settings.get("rate", 2e-3)), float(settings.get("dropout", 0.1))
        if dropout >= 1:
            raise InvalidValueError(f"dropout must be below 1, not {settings['dropout']!r}")
        members, width, layers = (
            int(settings.get(name, default))
            for name, default in (("members", 2), ("width", 208), ("layers", 8))
        )
        shapes = [
            ((members, x.shape[1], width), (2.0 / x.shape[1]) ** 0.5),
            # What a layer adds is small against what it gets.
            ((layers, members, width, width), 0.5 * (2.0 / width) ** 0.5),
            ((members, width, z.shape[1]), (1.0 / width) ** 0.5),
        ]
        arrays = first_arrays(shapes, generator, x.device)
        steps, batch = n_steps(settings, len(x), 256, (2_000, 15_000))
        rows = torch.zeros(members, batch, dtype=torch.long, device=x.device)
        dropped = torch.zeros((), device=x.device)
        at_rate = torch.tensor(rate, device=x.device)
        optimiser = torch.optim.AdamW(
            [
                {"params": arrays[::2], "weight_decay": float(settings.get("decay", 0.1))},
                {"params": arrays[1::2], "weight_decay": 0.0},
            ],
            lr=at_rate,
            fused=True,
            capturable=x.device.type == "cuda",
        )

        def thinned(hidden: torch.Tensor) -> torch.Tensor:
            active = torch.nn.functional.silu(hidden)
            return active * (torch.rand_like(active) >= dropped) / (1.0 - dropped)

        def step() -> None:
            first, first_bias, inner, inner_bias, last, last_bias = arrays
            hidden = torch.baddbmm(first_bias[:, None], x[rows], first)
            for weights, bias in zip(inner.unbind(), inner_bias.unbind(), strict=True):
                hidden = hidden + torch.baddbmm(bias[:, None], thinned(hidden), weights)
            found = torch.baddbmm(last_bias[:, None], thinned(hidden), last)
            descend(optimiser, found, z[rows])

        run = _recorded(step, x.device)
        for number, chosen in enumerate(batches(x, batch, steps, members, generator)):
            rows.copy_(chosen)
            done = number / steps
            fall = 0.5 * (1.0 + math.cos(math.pi * (done - _WARM) / (1.0 - _WARM)))
            at_rate.fill_(rate * (done / _WARM if done < _WARM else fall) + 1e-8)
            dropped.fill_(dropout * max(0.0, 1.0 - done / _DROPPED))
            run()
        return arrays

    def layers(self) -> list[tuple[Features, Features]]:
        """Weights and biases of the first layer, of the equal layers, and of the last."""
        first, first_bias, inner, inner_bias, last, last_bias = self.arrays().values()
        return [(first, first_bias), *zip(inner, inner_bias, strict=True), (last, last_bias)]

    def outputs(self, x: Features) -> Features:
        """What each member predicts, shape (members, n, n_targets)."""
        first, first_bias, inner, inner_bias = self._halved
        last, last_bias = self.layers()[-1]
        hidden = np.matmul(x, first)
        hidden += first_bias[:, None]
        active, added = np.empty_like(hidden), np.empty_like(hidden)
        for weights, bias in zip(inner, inner_bias, strict=True):
            np.matmul(_silu_of_half(hidden, active), weights, out=added)
            hidden += added
            hidden += bias[:, None]
        return np.asarray(np.matmul(_silu_of_half(hidden, active), last) + last_bias[:, None])


def _silu_of_half(half: Features, out: Features) -> Features:
    """Sigmoid-weighted values, x / (1 + exp(-x)), from x / 2: h + h tanh(h), in fewer passes."""
    np.tanh(half, out=out)
    out += np.float32(1.0)
    out *= half
    return out


def _recorded(step: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """A step that a GPU records once and repeats as a whole."""
    if device.type != "cuda":
        return step
    import torch

    calls = 0
    graph = torch.cuda.CUDAGraph()
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def run() -> None:
        nonlocal calls
        calls += 1
        if calls <= 3:  # what is set up at first must not be recorded
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                step()
            torch.cuda.current_stream().wait_stream(aside)
            return
        if calls == 4:
            with torch.cuda.graph(graph):
                step()
        graph.replay()

    return run
