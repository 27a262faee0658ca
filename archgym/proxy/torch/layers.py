"""Networks on a device of PyTorch: a first layer of tables, and what follows it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from archgym.errors import InvalidValueError
from archgym.proxy.inputs import Inputs
from archgym.proxy.models import Features
from archgym.proxy.models.ensemble import Ensemble
from archgym.proxy.proxy import Part, Proxy
from archgym.space import DesignSpace

if TYPE_CHECKING:
    import torch

_TABLE_ROWS = 512
"""Rows of a table of the first layer, one a combination of levels of neighbouring parameters."""


class FirstLayer:
    """The first layer of an ensemble, from codes of designs.

    It sees a sum over parameters, and pairs of them that are compared, of what each level or two
    contribute. So codes are looked up in tables, one for some parameters together, and no features
    are ever made.

    Args:
        space: the design space.
        first: weights (members, inputs, width).
        bias: biases (members, width).
        own: what the networks see of the workload; it joins the biases.
        device: where the tables are.
    """

    def __init__(
        self,
        space: DesignSpace,
        first: Features,
        bias: Features,
        own: Features,
        device: torch.device,
    ) -> None:
        import torch

        inputs = Inputs(space)
        bias = bias + np.einsum("f,mfo->mo", own, first[:, len(inputs.names) :])
        sizes = [parameter.size + 1 for parameter in space.parameters]  # inactive is the last level
        last = np.array(sizes, dtype=np.int32) - 1
        neighbours = _grouped(sizes)
        groups = [*neighbours, *map(list, inputs.pairs)]
        tables, end = [], 0
        for number, group in enumerate(groups):
            levels = np.indices([sizes[p] for p in group]).reshape(len(group), -1).T
            codes = np.full((len(levels), len(sizes)), -1, dtype=np.int64)
            codes[:, group] = np.where(levels == last[group], -1, levels)
            if number < len(neighbours):
                seen = [inputs.of_parameter(codes, position) for position in group]
            else:
                seen = [inputs.of_pair(codes, number - len(neighbours))]
            table = np.zeros((len(levels), len(first), first.shape[2]), dtype=np.float32)
            for features in seen:
                begin, end = end, end + features.shape[1]
                table += np.einsum("lf,mfo->lmo", features, first[:, begin:end])
            tables.append(table)
        strides = np.zeros((len(groups), max(map(len, groups))), dtype=np.int32)
        places = np.zeros_like(strides)
        for number, group in enumerate(groups):
            places[number, : len(group)] = group
            steps = [math.prod(sizes[p] for p in group[i + 1 :]) for i in range(len(group))]
            strides[number, : len(group)] = steps
        starts = np.cumsum([0, *map(len, tables[:-1])]).astype(np.int32)
        self._members, self._width = len(first), first.shape[2]
        rows = np.concatenate(tables).reshape(-1, self._members * self._width)
        self._table, self._places, self._strides, self._starts, self._last, self._bias = (
            torch.as_tensor(one, device=device)
            for one in (
                *(rows, places.ravel(), strides, starts),
                *(last, bias.reshape(-1)),
            )
        )

    def __call__(self, codes: torch.Tensor) -> torch.Tensor:
        """What the layer gives before it is made non-linear, float32, (members, n, width)."""
        import torch

        levels = torch.where(codes < 0, self._last, codes)[:, self._places]
        rows = (levels.view(len(codes), *self._strides.shape) * self._strides).sum(dim=2)
        rows = rows.to(torch.int32) + self._starts
        found = torch.nn.functional.embedding_bag(rows, self._table, mode="sum")
        by_design = (found + self._bias).view(len(codes), self._members, self._width)
        return by_design.transpose(0, 1)


class PartOnDevice:
    """The networks of a part of a proxy on a device, and the way back from outputs to metrics.

    Args:
        proxy: the proxy.
        part: one of its parts, whose model is an ensemble of networks.
        workload: its index.
        device: where they are.
        kind: type of the products' factors; what residual layers add up stays float32.

    Raises:
        InvalidValueError: if its model is of another family.
    """

    def __init__(
        self, proxy: Proxy, part: Part, workload: int, device: torch.device, kind: torch.dtype
    ) -> None:
        import torch

        if not isinstance(part.model, Ensemble):
            raise InvalidValueError(
                f"only networks run with PyTorch, and a model of this proxy is of family "
                f"{part.model.kind!r}: train with models=('mlp',) or ('residual',)"
            )
        first, *rest = part.model.layers()
        own = part.workload_values[part.workloads.index(workload)]
        self._first = FirstLayer(proxy.space, *first, own, device)
        self._residual, self._kind = part.model.residual, kind
        self._layers = [
            [torch.as_tensor(one, dtype=kind, device=device) for one in (weights, biases[:, None])]
            for weights, biases in rest
        ]
        scale, baseline = part.scale, proxy.baseline(workload)[list(part.targets)]
        ratio = np.where(np.array(scale.form) == "relative", baseline, 1.0)
        self._log = torch.as_tensor([form != "linear" for form in scale.form], device=device)
        self._spread, self._centre, self._ratio = (
            torch.as_tensor(one, dtype=torch.float32, device=device)
            for one in (scale.spread, scale.centre, ratio)
        )

    def __call__(self, codes: torch.Tensor) -> torch.Tensor:
        """Metrics in their units, float32, shape (n, n_targets)."""
        import torch

        values = self._outputs(codes).mean(dim=0) * self._spread + self._centre
        values = torch.where(self._log, torch.exp(values.clamp(max=80.0)), values)
        return values * self._ratio

    def _outputs(self, codes: torch.Tensor) -> torch.Tensor:
        """Outputs of the members, float32, shape (members, n, outputs)."""
        import torch

        hidden = self._first(codes)
        if not self._residual:
            hidden = torch.relu(hidden).to(self._kind)
        last = len(self._layers) - 1
        for layer, (weights, biases) in enumerate(self._layers):
            if self._residual:
                active = torch.nn.functional.silu(hidden).to(self._kind)
                found = torch.baddbmm(biases, active, weights)
                hidden = hidden + found if layer < last else found
            else:
                hidden = torch.baddbmm(biases, hidden, weights)
                hidden = torch.relu(hidden) if layer < last else hidden
        return hidden.float()


def _grouped(sizes: list[int]) -> list[list[int]]:
    """Positions of neighbours that share a table."""
    groups: list[list[int]] = []
    for position, size in enumerate(sizes):
        if groups and math.prod(sizes[p] for p in groups[-1]) * size <= _TABLE_ROWS:
            groups[-1].append(position)
        else:
            groups.append([position])
    return groups
