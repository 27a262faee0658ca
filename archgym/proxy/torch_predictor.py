"""Predictions in large batches with PyTorch, on a GPU where there is one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError, MissingDependencyError
from archgym.proxy.inputs import Inputs
from archgym.proxy.models.networks import Networks
from archgym.proxy.proxy import Part, Proxy

if TYPE_CHECKING:
    import torch

__all__ = ["TorchPredictor"]

_CHUNK = 1 << 16
"""Designs at once by default: their activations stay in the last cache of a large GPU."""
_TABLE_ROWS = 512
"""Rows of a table of the first layer, one a combination of levels of neighbouring parameters."""


class TorchPredictor:
    """The means of a proxy's networks on one workload, on a device of PyTorch.

    The first layer of a network sees a sum over parameters of what each level contributes, so
    codes are looked up in tables, one for some parameters together, and no features are ever made.

    Args:
        proxy: whose models are all of family ``mlp``.
        workload: index of the workload.
        device: such as ``cuda`` or ``cpu``.
        precision: ``float32`` (TensorFloat-32 products on a GPU), ``bfloat16`` or ``float16`` for
            the products; sums, first layer and results are float32.
        chunk: designs at once.
        compiled: whether ``torch.compile`` joins operations; it needs a C compiler, and the first
            call takes a while.

    Attributes:
        names: the metrics that it gives, in the order of the columns.

    Raises:
        InvalidValueError: if a model is of another family, or the precision is unknown.
        MissingDependencyError: if PyTorch does not find the device.
    """

    def __init__(
        self,
        proxy: Proxy,
        workload: int = 0,
        *,
        device: str = "cpu",
        precision: str = "float32",
        chunk: int = _CHUNK,
        compiled: bool = False,
    ) -> None:
        import torch

        kinds = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
        if precision not in kinds:
            raise InvalidValueError(f"precision is one of {', '.join(kinds)}, not {precision!r}")
        if device.startswith("cuda") and not torch.cuda.is_available():
            raise MissingDependencyError("PyTorch finds no CUDA device: use device='cpu'")
        self._device, self._kind = torch.device(device), kinds[precision]
        parts = [part for part in proxy.parts if workload in part.workloads]
        networks = [_Part(proxy, part, workload, self._device, self._kind) for part in parts]
        self._parts: list[Callable[[torch.Tensor], torch.Tensor]] = [
            torch.compile(one.__call__, dynamic=False) if compiled else one for one in networks
        ]
        self._chunk = chunk
        self.names = tuple(proxy.metrics[t].name for part in parts for t in part.targets)

    def codes(self, codes: NDArray[np.int64]) -> torch.Tensor:
        """Codes of designs on the device, shape (n, n_parameters)."""
        import torch

        return torch.as_tensor(codes.astype(np.int32), device=self._device)

    def __call__(self, codes: torch.Tensor) -> torch.Tensor:
        """Metrics in their units, float32 on the device, shape (n, len(names)).

        Args:
            codes: see :meth:`codes`.
        """
        import torch

        with torch.inference_mode():
            blocks = [
                torch.cat([part(block) for part in self._parts], dim=1)
                for block in codes.split(self._chunk)  # type: ignore[no-untyped-call]
            ]
            return torch.cat(blocks) if blocks else torch.empty(0, len(self.names))


class _Part:
    """One ensemble of networks."""

    def __init__(
        self,
        proxy: Proxy,
        part: Part,
        workload: int,
        device: torch.device,
        kind: torch.dtype,
    ) -> None:
        import torch

        if not isinstance(part.model, Networks):
            raise InvalidValueError(
                f"only networks run with PyTorch, and a model of this proxy is of family "
                f"{part.model.kind!r}: train with models=('mlp',)"
            )
        first, *rest = part.model.weights
        bias = part.model.biases[0].copy()
        n_inputs = len(Inputs(proxy.space).names)
        if part.workload_names:
            own = part.workload_values[part.workloads.index(workload)]
            bias = bias + np.einsum("f,mfo->mo", own, first[:, n_inputs:])
        # What each level of each parameter adds to the first layer; inactive is the last row.
        inputs = Inputs(proxy.space)
        sizes = [parameter.size + 1 for parameter in proxy.space.parameters]
        shares, end = [], 0
        for position, size in enumerate(sizes):
            codes = np.full((size, len(sizes)), -1, dtype=np.int64)
            codes[:-1, position] = np.arange(size - 1)
            features = inputs.of_parameter(codes, position)
            begin, end = end, end + features.shape[1]
            shares.append(np.einsum("lf,mfo->lmo", features, first[:, begin:end]))
        self._members, self._width = len(first), first.shape[2]
        groups = _grouped(sizes)
        tables, strides = [], np.zeros((len(groups), max(map(len, groups))), dtype=np.int32)
        places = np.zeros_like(strides)
        for number, group in enumerate(groups):
            joined = shares[group[0]]
            for position in group[1:]:
                joined = (joined[:, None] + shares[position][None]).reshape(-1, *joined.shape[1:])
            tables.append(joined)
            places[number, : len(group)] = group
            steps = [math.prod(sizes[p] for p in group[i + 1 :]) for i in range(len(group))]
            strides[number, : len(group)] = steps
        starts = np.cumsum([0, *map(len, tables[:-1])]).astype(np.int32)
        rows = np.concatenate(tables).reshape(-1, self._members * self._width)
        self._table, self._places, self._strides, self._starts, self._last = (
            torch.as_tensor(one, device=device)
            for one in (rows, places.ravel(), strides, starts, np.array(sizes, dtype=np.int32) - 1)
        )
        self._first_bias = torch.as_tensor(bias.reshape(-1), device=device)
        self._weights = [torch.as_tensor(w, dtype=kind, device=device) for w in rest]
        self._biases = [
            torch.as_tensor(b[:, None], dtype=kind, device=device) for b in part.model.biases[1:]
        ]
        self._kind = kind
        scale = part.scale
        baseline = proxy.baseline(workload)[list(part.targets)]
        ratio = [
            base if form == "relative" else 1.0
            for form, base in zip(scale.form, baseline.tolist(), strict=True)
        ]
        self._log = torch.as_tensor([form != "linear" for form in scale.form], device=device)
        self._spread, self._centre, self._ratio = (
            torch.as_tensor(np.asarray(one), dtype=torch.float32, device=device)
            for one in (scale.spread, scale.centre, ratio)
        )

    def __call__(self, codes: torch.Tensor) -> torch.Tensor:
        import torch

        levels = torch.where(codes < 0, self._last, codes)[:, self._places]
        rows = (levels.view(len(codes), *self._strides.shape) * self._strides).sum(dim=2)
        rows = rows.to(torch.int32) + self._starts
        hidden = torch.nn.functional.embedding_bag(rows, self._table, mode="sum")
        hidden = torch.relu(hidden + self._first_bias).to(self._kind)
        hidden = hidden.view(len(codes), self._members, self._width).transpose(0, 1)
        for layer, (weights, biases) in enumerate(zip(self._weights, self._biases, strict=True)):
            hidden = torch.baddbmm(biases, hidden, weights)
            if layer < len(self._weights) - 1:
                hidden = torch.relu(hidden)
        values = hidden.float().mean(dim=0) * self._spread + self._centre
        values = torch.where(self._log, torch.exp(values.clamp(max=80.0)), values)
        return values * self._ratio


def _grouped(sizes: list[int]) -> list[list[int]]:
    """Positions of neighbours that share a table."""
    groups: list[list[int]] = []
    for position, size in enumerate(sizes):
        if groups and math.prod(sizes[p] for p in groups[-1]) * size <= _TABLE_ROWS:
            groups[-1].append(position)
        else:
            groups.append([position])
    return groups
