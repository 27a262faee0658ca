"""An ensemble of deep residual networks: slower to train, best with many designs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError
from archgym.proxy.models.base import Array, Features, Model, checked, one_thread, training_steps

if TYPE_CHECKING:
    import torch

_BATCH = 256
_STEPS = (2_000, 15_000)
_WARM, _DROPPED = 0.05, 0.9
"""Shares of the steps in which the learning rate rises, and in which units are dropped."""
_CHUNK = 512
"""Designs whose activations stay in the processor's cache."""
_NAMES = ("first", "first_bias", "inner", "inner_bias", "last", "last_bias")


class ResidualNetworks(Model):
    """Networks of equal layers, each of which adds to what it gets (He and others, CVPR 2016).

    A first layer is followed by layers that add a product with the SiLU of their input to it, and
    a last one. Units are dropped at random (Srivastava and others, JMLR 2014), ever fewer and at
    last none, so that what is flat in the data is flat in the end. Trained with PyTorch on one
    thread or a GPU; predictions need NumPy only.
    """

    kind: ClassVar[str] = "residual"

    def __init__(self, arrays: list[Features]) -> None:
        """Weights and biases of the members.

        ``first`` (members, inputs, width), ``inner`` (layers, members, width, width), ``last``
        (members, width, outputs), each followed by its biases, without the axis of the inputs.
        """
        self._arrays = arrays
        # Predictions hold half of what the layers add up: see _silu_of_half.
        self._halved = [one * np.float32(0.5) for one in arrays[:4]] + arrays[4:]

    @classmethod
    def fit(cls, x: Features, z: Array, seed: int, settings: Mapping[str, Any]) -> ResidualNetworks:
        """Networks of some data.

        Settings: ``members`` (2), ``width`` (208), ``layers`` (8) between the first and the last,
        ``epochs`` (300, but by default within 2,000 to 15,000 steps), ``rate`` (0.002), ``decay``
        (0.1), ``dropout`` (0.1), ``device`` (``cpu``).

        Raises:
            InvalidValueError: if a share of 1 or more is to be dropped.
        """
        import torch

        if float(settings.get("dropout", 0.1)) >= 1:
            raise InvalidValueError(f"dropout must be below 1, not {settings['dropout']!r}")
        device = torch.device(str(settings.get("device", "cpu")))
        own = [device] if device.type == "cuda" else []
        with one_thread(device.type), torch.random.fork_rng(own):
            torch.manual_seed(seed)
            arrays = _train(
                torch.as_tensor(x, device=device),
                torch.as_tensor(z, dtype=torch.float32, device=device),
                *(torch.Generator().manual_seed(seed), settings),
            )
        return cls([one.detach().cpu().numpy() for one in arrays])

    def predict(self, x: Features) -> tuple[Array, Array]:
        """Mean of the members, and their standard deviation."""
        first, first_bias, inner, inner_bias, last, last_bias = self._halved
        n, outputs = len(x), last.shape[2]
        mean, spread = np.empty((n, outputs)), np.empty((n, outputs))
        hidden, active, added = (
            np.empty((len(first), min(n, _CHUNK), first.shape[2]), np.float32) for _ in range(3)
        )
        for start in range(0, n, _CHUNK):
            part = slice(start, start + _CHUNK)
            size = len(x[part])
            hidden, active, added = hidden[:, :size], active[:, :size], added[:, :size]
            np.matmul(x[part], first, out=hidden)
            hidden += first_bias[:, None]
            for weights, bias in zip(inner, inner_bias, strict=True):
                np.matmul(_silu_of_half(hidden, active), weights, out=added)
                hidden += added
                hidden += bias[:, None]
            found = np.matmul(_silu_of_half(hidden, active), last) + last_bias[:, None]
            members = found.astype(np.float64)
            mean[part], spread[part] = members.mean(axis=0), members.std(axis=0)
        return mean, spread

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Weights and biases."""
        return dict(zip(_NAMES, self._arrays, strict=True))

    @classmethod
    def of(
        cls, arrays: Mapping[str, NDArray[Any]], n_features: int, n_targets: int
    ) -> ResidualNetworks:
        """The inverse of :meth:`arrays`."""
        found = checked(arrays, _NAMES, np.float32, "networks")
        inner = found[2]
        if inner.ndim != 4 or not inner.shape[1]:
            raise InvalidValueError("the arrays are no networks")
        layers, members, width, _ = inner.shape
        shapes = [
            *((members, n_features, width), (members, width)),
            *((layers, members, width, width), (layers, members, width)),
            *((members, width, n_targets), (members, n_targets)),
        ]
        if [one.shape for one in found] != shapes:
            raise InvalidValueError("the arrays are no networks of these features and targets")
        return cls(found)


def _silu_of_half(half: Features, out: Features) -> Features:
    """Sigmoid-weighted values, x / (1 + exp(-x)), from x / 2: h + h tanh(h), in fewer passes."""
    np.tanh(half, out=out)
    out += np.float32(1.0)
    out *= half
    return out


def _train(
    x: torch.Tensor, z: torch.Tensor, generator: torch.Generator, settings: Mapping[str, Any]
) -> list[torch.Tensor]:
    """AdamW on a loss that outliers do not dominate; the rate falls by half a cosine."""
    import torch

    n, batch, device = len(x), min(_BATCH, len(x)), x.device
    steps = training_steps(settings, n, batch, _STEPS)
    rate, dropout = float(settings.get("rate", 2e-3)), float(settings.get("dropout", 0.1))
    arrays = _start(x.shape[1], z.shape[1], generator, settings)
    arrays = [one.to(device).requires_grad_() for one in arrays]
    members = len(arrays[0])
    rows = torch.zeros(members, batch, dtype=torch.long, device=device)
    dropped = torch.zeros((), device=device)
    at_rate = torch.tensor(rate, device=device)
    optimiser = torch.optim.AdamW(
        [
            {"params": arrays[::2], "weight_decay": float(settings.get("decay", 0.1))},
            {"params": arrays[1::2], "weight_decay": 0.0},
        ],
        lr=at_rate,
        fused=True,
        capturable=device.type == "cuda",
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
        # The sum over members: none gets a smaller step since there are others.
        loss = torch.nn.functional.smooth_l1_loss(found, z[rows], beta=0.1) * members
        optimiser.zero_grad(set_to_none=False)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    run = _recorded(step, device)
    orders: list[torch.Tensor] = []
    for number in range(steps):
        if not orders:
            mixed = torch.stack([torch.randperm(n, generator=generator) for _ in range(members)])
            whole = mixed[:, : n // batch * batch].to(device)
            orders = list(whole.reshape(members, -1, batch).unbind(dim=1))
        rows.copy_(orders.pop())
        done = number / steps
        fall = 0.5 * (1.0 + math.cos(math.pi * (done - _WARM) / (1.0 - _WARM)))
        at_rate.fill_(rate * (done / _WARM if done < _WARM else fall) + 1e-8)
        dropped.fill_(dropout * max(0.0, 1.0 - done / _DROPPED))
        run()
    return arrays


def _start(
    inputs: int, outputs: int, generator: torch.Generator, settings: Mapping[str, Any]
) -> list[torch.Tensor]:
    """First weights; what a layer adds is small against what it gets."""
    import torch

    members, width, layers = (
        int(settings.get(name, default))
        for name, default in (("members", 2), ("width", 208), ("layers", 8))
    )
    shapes = [
        ((members, inputs, width), (2.0 / inputs) ** 0.5),
        ((layers, members, width, width), 0.5 * (2.0 / width) ** 0.5),
        ((members, width, outputs), (1.0 / width) ** 0.5),
    ]
    arrays = []
    for shape, scale in shapes:
        arrays += [torch.randn(*shape, generator=generator) * scale]
        arrays += [torch.zeros(*shape[:-2], shape[-1])]
    return arrays


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
