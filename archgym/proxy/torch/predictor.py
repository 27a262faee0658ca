"""Predictions in large batches with PyTorch, on a GPU where there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from archgym.errors import InvalidValueError, MissingDependencyError
from archgym.proxy.proxy import Proxy
from archgym.proxy.torch.layers import PartOnDevice

if TYPE_CHECKING:
    import torch

_CHUNK = 1 << 16
"""Designs at once by default: their activations stay in the last cache of a large GPU."""


class TorchPredictor:
    """The means of a proxy's networks on one workload, on a device of PyTorch.

    Args:
        proxy: whose models are all of family ``mlp`` or ``residual``.
        workload: index of the workload.
        device: such as ``cuda`` or ``cpu``.
        precision: ``float32`` (TensorFloat-32 products on a GPU), ``bfloat16`` or ``float16`` for
            the products; first layer, what residual layers add up, and results are float32.
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
        networks = [PartOnDevice(proxy, part, workload, self._device, self._kind) for part in parts]
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
