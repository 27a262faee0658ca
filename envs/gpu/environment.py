"""GPU kernels: tiles, warps and pipeline of a Triton kernel as a design space."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any, ClassVar

import numpy as np

from archgym.environment.environment import Environment
from archgym.envs.gpu.model.device import device_named, devices
from archgym.envs.gpu.model.gemm import parts, shared_bytes
from archgym.envs.gpu.parameters import BYTES, PARAMETERS, SHAPES, Shape
from archgym.envs.gpu.space import BASELINES, design_space, kernel_of
from archgym.envs.gpu.workload import DEFAULT_WORKLOAD, shape_of, shape_sha256
from archgym.errors import InvalidValueError, NotCoveredError, SimulationError, UnknownNameError
from archgym.problem.metrics import Metric
from archgym.problem.simulator import SimulationResult, Simulator
from archgym.space import Designs, DesignSpace

__all__ = ["GPUKernel"]

_SPACES = {"default": "gemm", "attention": "attention", "norm": "norm"}


def _triton(environment: GPUKernel) -> Simulator:
    """Measures each design on the GPU of this machine, with torch and triton."""
    from archgym.envs.gpu.triton_simulator import TritonSimulator

    return TritonSimulator.with_options(environment.simulator_options, environment.shape)


class GPUKernel(Environment):
    """Search the tuning parameters of a Triton kernel for a shape.

    >>> env = GPUKernel(workload={"gemm": [4096, 4096, 4096]})
    >>> env.evaluate(env.baseline_design).metrics["time_us"] > 0
    True

    Args:
        device: the GPU of the embedded model, by its data sheet.
        workload: name of a shape, or ``{"gemm": [m, n, k], "dtype": "fp16"}``.
        simulator_options: with ``simulator="triton"``, ``passes`` and ``power``; see
            :class:`~archgym.envs.gpu.triton_simulator.TritonSimulator`.
        **arguments: of :class:`archgym.Environment`; ``space`` is that of the workload's kernel.

    Attributes:
        device: the GPU.
        shape: the workload.

    Raises:
        UnknownNameError, InvalidValueError: for an argument that is not possible.
        MissingDependencyError: with ``simulator="triton"``, if torch, triton or a GPU is missing.
    """

    metrics: ClassVar = (
        Metric("time_us", "us", "minimize", "median of the launches, with a cold L2 cache"),
        Metric("time_us_spread_share", "", "minimize", "deviation between passes by the median"),
        Metric("power_w", "W", "minimize", "while the kernel runs without pause"),
        Metric("energy_mj", "mJ", "minimize", "of a launch, while it runs without pause"),
    )
    default_objective: ClassVar = "minimize time_us"
    baseline: ClassVar = BASELINES["gemm"]
    default_workload: ClassVar = DEFAULT_WORKLOAD
    simulators: ClassVar = {"triton": _triton}
    spaces_of_workload: ClassVar = ("default",)
    modelled: ClassVar = (
        "waves of tiles over the multiprocessors, and how many blocks one of them holds",
        "in each step along K: matrix units, the L2 cache's path, shared memory and latency",
        "traffic of the device memory, by what a wave of tiles has in common",
        "shared memory, for which a design is refused as the GPU refuses it",
    )
    not_modelled: ClassVar = (
        "attention and normalisation: only measured",
        "power and energy: only measured",
        "clocks that fall under load, and noise",
    )

    def __init__(self, *, device: str = "h200", **arguments: Any) -> None:
        self.device = device_named(device)
        workload = arguments.get("workload")
        self.shape: Shape = shape_of(self.default_workload if workload is None else workload)
        super().__init__(**arguments)

    @property
    def metrics_given(self) -> tuple[str, ...]:
        """The embedded model gives the time."""
        return ("time_us",)

    def simulate_batch(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Times by the model of products."""
        start = time.perf_counter()
        results = self._modelled(designs)
        spent = (time.perf_counter() - start) / max(1, len(results))
        return [(result, spent) for result in results]

    def _modelled(self, designs: Designs) -> list[SimulationResult]:
        shape, device = self.shape, self.device
        if shape.kernel != "gemm":
            why = f"the embedded model has no {shape.kernel}: measure it, with simulator='triton'"
            return [NotCoveredError(why)] * len(designs)
        if shape.dtype not in device.flops_per_cycle:
            why = f"the matrix units of {device.title} have no {shape.dtype}"
            return [NotCoveredError(why)] * len(designs)
        some = [dict(design) for design in designs]
        values = {
            name: np.array([design[name] for design in some], dtype=float)
            for name in PARAMETERS["gemm"]
        }
        sizes = {name: np.full(len(some), float(size)) for name, size in shape.sizes.items()}
        found = parts(values, sizes, shape.dtype, device, _coefficients())["time_us"]
        need = shared_bytes(values, BYTES[shape.dtype], warpgroups=device.warpgroups)
        results: list[SimulationResult] = []
        for time_us, shared in zip(found.tolist(), need.tolist(), strict=True):
            if shared > device.shared_bytes:
                has = f"{shared:.0f} bytes, a block has at most {device.shared_bytes}"
                results.append(SimulationError(f"shared memory: the pipeline needs {has}"))
            else:
                results.append({"time_us": time_us})
        return results

    def load_workload(self, spec: Any) -> None:
        """Takes the shape."""
        self.shape = shape_of(spec)

    @classmethod
    def workloads(cls) -> dict[str, str]:
        """The shapes, with a line on each."""
        return {shape.name: f"{shape.doc}, {shape.dtype}" for shape in SHAPES}

    @property
    def workload_name(self) -> str:
        """Name of the shape."""
        return self.shape.name

    def hash_workload(self) -> str:
        """Hash of kernel, sizes and element type."""
        return shape_sha256(self.shape)

    @property
    def settings(self) -> dict[str, Any]:
        """The GPU."""
        return {"device": self.device.name}

    @classmethod
    def argument_docs(cls) -> dict[str, str]:
        """The GPUs, and the options of measuring."""
        return {
            "device": ", ".join(f"{name} ({one.title})" for name, one in devices().items()),
            "simulator_options": "for 'triton': a mapping with passes and power",
        }

    @classmethod
    def sources(cls) -> dict[str, str]:
        """Where the figures of the GPUs stand."""
        return {f"device {name}": one.source for name, one in devices().items()}

    @classmethod
    def spaces(cls) -> dict[str, DesignSpace]:
        """The design spaces; ``default`` is that of products."""
        return {name: design_space(kernel) for name, kernel in _SPACES.items()}

    def _choose_space(self, space: str | DesignSpace) -> DesignSpace:
        if isinstance(space, DesignSpace):
            chosen = space
        elif space not in _SPACES:
            raise UnknownNameError("space", space, _SPACES)
        elif space != "default" and _SPACES[space] != self.shape.kernel:
            raise InvalidValueError(
                f"space {space!r} is of another kernel than workload {self.shape.name!r}, "
                f"whose kernel is {self.shape.kernel}"
            )
        else:
            chosen = design_space(self.shape.kernel)
        self.baseline = BASELINES[kernel_of(chosen)]  # type: ignore[misc]
        return chosen


@lru_cache(maxsize=1)
def _coefficients() -> Mapping[str, float]:
    file = resources.files("archgym.envs.gpu.model").joinpath("fitted.json")
    data: dict[str, Any] = json.loads(file.read_text("utf-8"))
    coefficients: dict[str, float] = data["coefficients"]
    return coefficients
