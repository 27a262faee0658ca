"""GPU kernels: tiles, warps and pipeline of a Triton kernel as a design space."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from archgym.environment.environment import Environment
from archgym.envs.gpu.embedded import METRICS, simulated
from archgym.envs.gpu.model.device import device_named, devices
from archgym.envs.gpu.parameters import PARAMETERS, SHAPES, Shape
from archgym.envs.gpu.space import BASELINES, baseline_of, design_space
from archgym.envs.gpu.workload import DEFAULT_WORKLOAD, shape_of, shape_sha256
from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.metrics import Metric
from archgym.problem.reference import Reference
from archgym.problem.simulator import SimulationResult, Simulator
from archgym.simulators.resolve import meant_workload
from archgym.space import Designs, DesignSpace

__all__ = ["GPUKernel"]

_MAX_EXTRA_W = 400
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
        memory_extra_w: power that the memory of your GPU takes more than that of the H200 that the
            model was fitted to, at the data sheet's bandwidth, W;
            ``python -m archgym.envs.gpu.measuring.memory_power`` measures it.
        workload: name of a shape; ``{"gemm": [m, n, k], "dtype": "fp16"}``; ``{"attention": [batch,
            heads, length, head], "causal": True}``; or ``{"norm": [rows, columns]}``.
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
    version: ClassVar = "5"
    default_objective: ClassVar = "minimize time_us"
    baseline: ClassVar = BASELINES["gemm"]
    default_workload: ClassVar = DEFAULT_WORKLOAD
    simulators: ClassVar = {"triton": _triton}
    compiles: ClassVar = True
    spaces_of_workload: ClassVar = ("default",)
    modelled: ClassVar = (
        "waves of tiles over the multiprocessors, and how many blocks one of them holds",
        "in each step along K: matrix units, the L2 cache's path, shared memory and latency",
        "traffic of the device memory, by what a wave of tiles has in common",
        "softmax and steps of attention, passes of the normalisation, in the same way",
        "a correction of these terms that was learned from measurements on an H200",
        "power of each part of the GPU by how busy it is, with what the L2 cache holds, to a limit",
        "tiles that threads load, and tiles that the copy engine loads and stores",
        "designs that the GPU refuses for shared memory, and fp8 products that are too inexact",
    )
    not_modelled: ClassVar = (
        "clocks that fall under load, other than in the measurements, and noise",
        "shapes far smaller than any that was measured: what is learned does not hold there",
        "the power of the parts of other GPUs: it is the H200's, in proportion to the power limit",
        "other compilers: registers and spills are those of one version of Triton",
    )

    def __init__(
        self, *, device: str = "h200", memory_extra_w: float = 0.0, **arguments: Any
    ) -> None:
        if not isinstance(memory_extra_w, int | float) or not abs(memory_extra_w) <= _MAX_EXTRA_W:
            raise InvalidValueError(
                f"memory_extra_w={memory_extra_w!r:.80} must be a number from -{_MAX_EXTRA_W} to "
                f"{_MAX_EXTRA_W}"
            )
        self.device = replace(device_named(device), memory_extra_w=float(memory_extra_w))
        workload = meant_workload(arguments.get("workload"), arguments.get("simulator"))
        # Its kernel decides the space.
        self.shape: Shape = shape_of(self.default_workload if workload is None else workload)
        super().__init__(**arguments)

    @property
    def metrics_given(self) -> tuple[str, ...]:
        """Time, power and energy; repeats have no spread."""
        return METRICS

    def simulate_batch(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Time, power and energy by the models of the kernels."""
        start = time.perf_counter()
        results = simulated(self.shape, designs, self.device)
        spent = (time.perf_counter() - start) / max(1, len(results))
        return [(result, spent) for result in results]

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
        extra = self.device.memory_extra_w
        return {"device": self.device.name, **({"memory_extra_w": extra} if extra else {})}

    @classmethod
    def argument_docs(cls) -> dict[str, str]:
        """The GPUs, and the options of measuring."""
        return {
            "device": ", ".join(f"{name} ({one.title})" for name, one in devices().items()),
            "memory_extra_w": "W, as `python -m archgym.envs.gpu.measuring.memory_power` prints it",
            "simulator_options": "for 'triton': a mapping with passes and power",
        }

    @classmethod
    def sources(cls) -> dict[str, str]:
        """Where the figures of the GPUs stand."""
        return {f"device {name}": one.source for name, one in devices().items()}

    @classmethod
    def references(
        cls,
        table: Path | None = None,
        *,
        workloads: Path | None = None,
        hardware: str | None = None,
    ) -> list[Reference]:
        """Measured designs of shapes that the models were not fitted to.

        :mod:`archgym.envs.gpu.reference` describes the tables that can be read.

        Raises:
            InvalidValueError: if the table cannot be read, or another argument is given.
        """
        from archgym.envs.gpu.reference import read_reference, shipped_references

        if workloads is not None:
            raise InvalidValueError("references of GPUKernel-v0 have no workloads")
        if hardware is not None:
            raise InvalidValueError(
                f"hardware is {hardware!r}; name the GPU with --set device={hardware}"
            )
        return shipped_references() if table is None else read_reference(table)

    @classmethod
    def spaces(cls) -> dict[str, DesignSpace]:
        """The design spaces; ``default`` is that of products."""
        return {name: design_space(kernel) for name, kernel in _SPACES.items()}

    def _choose_space(self, space: str | DesignSpace) -> DesignSpace:
        kernel = self.shape.kernel
        self.baseline = baseline_of(self.shape)  # type: ignore[misc]
        if isinstance(space, DesignSpace):
            if set(space.names) != set(PARAMETERS[kernel]):
                raise InvalidValueError(
                    f"space has the parameters {', '.join(space.names)}; those of workload "
                    f"{self.shape.name!r} are {', '.join(PARAMETERS[kernel])}"
                )
            return space
        if space not in _SPACES:
            raise UnknownNameError("space", space, _SPACES)
        if space != "default" and _SPACES[space] != kernel:
            raise InvalidValueError(
                f"space {space!r} is of another kernel than workload {self.shape.name!r}, "
                f"whose kernel is {kernel}"
            )
        return design_space(kernel)
