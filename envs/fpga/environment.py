"""Neural layers on FPGAs: numbers, parallelism, pipeline and memories of a network's circuit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from archgym.environment.environment import Environment
from archgym.envs.fpga.embedded import simulated
from archgym.envs.fpga.hardware.device import DEVICES
from archgym.envs.fpga.network.named import DEFAULT_WORKLOAD, WORKLOADS
from archgym.envs.fpga.network.spec import Network
from archgym.envs.fpga.network.workload import network_of, network_sha256
from archgym.envs.fpga.space import BASELINE, design_space
from archgym.errors import InvalidValueError
from archgym.problem.metrics import Metric
from archgym.problem.reference import Reference
from archgym.problem.simulator import SimulationResult, Simulator, simulate_each
from archgym.space import Designs

__all__ = ["FPGA"]


def _nextpnr(environment: FPGA) -> Simulator:
    """Synthesises each design with yosys, places and routes it with nextpnr."""
    from archgym.envs.fpga.nextpnr_simulator import NextpnrSimulator

    names = tuple(metric.name for metric in environment.metrics)
    options = environment.simulator_options
    return NextpnrSimulator.with_options(options, environment.network, names)


class FPGA(Environment):
    """Search the circuit of a neural network on an FPGA.

    >>> env = FPGA(workload="jet_small")
    >>> env.evaluate(env.baseline_design).metrics["latency_ns"] > 0
    True

    Args:
        workload: name of a network, a JSON file, or a mapping; see
            :func:`archgym.envs.fpga.network.workload.network_of`.
        simulator_options: with ``simulator="nextpnr"``, ``seeds``, ``time_limit_s`` and
            ``threads``; see :class:`~archgym.envs.fpga.nextpnr_simulator.NextpnrSimulator`.
        **arguments: of :class:`archgym.Environment`.

    Attributes:
        network: the workload.

    Raises:
        UnknownNameError, InvalidValueError: for an argument that is not possible.
        MissingDependencyError: with ``simulator="nextpnr"``, if yosys is missing.
    """

    metrics: ClassVar = (
        Metric("lut_count", "", "minimize", "LUTs with four inputs; a bit of a chain is one"),
        Metric("ff_count", "", "minimize", "flip-flops"),
        Metric("dsp_count", "", "minimize", "multipliers"),
        Metric("bram_count", "", "minimize", "block RAMs"),
        Metric("lut_share", "", "minimize", "LUTs by those that the device has"),
        Metric("clock_mhz", "MHz", "maximize", "fastest clock, median over placement seeds"),
        Metric("clock_mhz_spread_share", "", "minimize", "its deviation over seeds, by the clock"),
        Metric("latency_cycles", "cycles", "minimize", "from the first input to the last output"),
        Metric("interval_cycles", "cycles", "minimize", "from one sample to the next"),
        Metric("latency_ns", "ns", "minimize", "the latency at the fastest clock"),
        Metric("samples_per_s", "samples/s", "maximize", "samples that follow each other"),
        Metric("samples_per_s_per_lut", "samples/s/LUT", "maximize", "those by the LUTs"),
        Metric(
            "sqnr_db",
            "dB",
            "maximize",
            "power of the outputs in floating point by that of the error of the integers",
            signed=True,
        ),
    )
    version: ClassVar = "4"
    default_objective: ClassVar = {
        "maximize": "samples_per_s_per_lut",
        "limits": ["sqnr_db >= 15", "latency_ns <= 5000"],
    }
    design_spaces: ClassVar = {"default": design_space()}
    baseline: ClassVar = BASELINE
    default_workload: ClassVar = DEFAULT_WORKLOAD
    simulators: ClassVar = {"nextpnr": _nextpnr}
    modelled: ClassVar = (
        "the circuit itself: the model counts the parts of the Verilog that is synthesised",
        "flip-flops, DSPs and block RAMs one by one; equal sums and equal registers once",
        "LUTs of carry chains, products, multiplexers and memories of constants",
        "the clock by the longest path between registers, with weights fitted to placed designs",
        "cycles of the schedule, exactly, and the error of the integers on samples",
    )
    not_modelled: ClassVar = (
        "where placement puts cells: congestion, and long wires of nearly full devices",
        "what synthesis finds in common between parts, beyond equal operands",
        "power",
    )

    def simulate_batch(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Metrics by the model of synthesis and placement."""
        return simulate_each(_Model(self.network), designs)

    def load_workload(self, spec: Any) -> None:
        """Takes the network."""
        self.network: Network = network_of(spec)

    @classmethod
    def workloads(cls) -> dict[str, str]:
        """The networks, with a line on each."""
        return {name: doc for name, (doc, _, _) in WORKLOADS.items()}

    @property
    def workload_name(self) -> str:
        """Name of the network."""
        return self.network.name

    def hash_workload(self) -> str:
        """Hash of sizes, weights and samples."""
        return network_sha256(self.network)

    @classmethod
    def argument_docs(cls) -> dict[str, str]:
        """The options of measuring."""
        return {"simulator_options": "for 'nextpnr': a mapping with seeds, time_limit_s, threads"}

    @classmethod
    def sources(cls) -> dict[str, str]:
        """Where the figures of the devices stand."""
        return {"devices": f"nextpnr 0.11: {', '.join(DEVICES)}"}

    @classmethod
    def references(
        cls,
        table: Path | None = None,
        *,
        workloads: Path | None = None,
        hardware: str | None = None,
    ) -> list[Reference]:
        """Measured designs of networks that the model was not fitted to.

        Raises:
            InvalidValueError: if the table cannot be read, or another argument is given.
        """
        from archgym.envs.fpga.reference import read_reference, shipped_references

        if workloads is not None or hardware is not None:
            raise InvalidValueError("references of FPGA-v0 have no workloads and no hardware")
        return shipped_references() if table is None else read_reference(table)


class _Model:
    def __init__(self, network: Network) -> None:
        self._network = network

    def simulate(self, design: dict[str, Any]) -> dict[str, float]:
        return simulated(self._network, design)
