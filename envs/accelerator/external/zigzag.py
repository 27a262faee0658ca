"""ZigZag as a simulator of the accelerator environment: the best of many temporal mappings.

ZigZag (Mei et al., IEEE Transactions on Computers 2021) is the package ``zigzag-dse``, which also
needs the package ``six``. It enumerates loop orders for every layer, about a second each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from archgym.envs.accelerator.cost.energy import accesses
from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.external.program import LayerResult, PythonProgram
from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.errors import InvalidValueError, SimulationError, UnknownNameError

__all__ = ["ZigZagSimulator", "zigzag_accelerator", "zigzag_mapping", "zigzag_workload"]

_SPATIAL: Mapping[str, tuple[str, str]] = {
    "nvdla_ws": ("K", "C"),
    "kx_free": ("K", "OX"),
    "shidiannao_os": ("OY", "OX"),
    "eyeriss_rs": ("FY", "OY"),
}
"""Which loop the rows and the columns of the array unroll; other dataflows are not covered."""
_OPERANDS = {"input": "I1", "weight": "I2", "output": "O"}
_DRAM_BITS = 10**10
"""Size of the memory: more than any layer needs."""
_MIN_PORT_BITS = 64
"""Smallest access of the global buffer, as in ZigZag's own ``tpu_like``."""


class ZigZagSimulator(PythonProgram):
    """Runs each design in a separate process, in an empty folder, with a time limit.

    It covers arrays with one multiplier a processing element and double buffers whose rows and
    columns unroll one loop each. The energies of an access are those of the design's technology.
    Metrics: latency, energy, power, energy-delay product, utilisation, and bytes moved to and from
    memory, each for the best mapping that it finds of every layer.

    Args:
        network: what the designs run.
        hardware: the hardware of a design.
        time_limit_s: wall-clock time of one design, s.
        threads: designs at a time; default one for each core.
        program: a Python interpreter that has the package; default this one.
        memory_limit_gb: address space that a run may take, GB.
        optimize: what its mapper minimises: ``latency``, ``energy`` or ``EDP``.
        lpf_limit: how finely it splits loops; the time that it takes grows steeply with it.
    """

    name = "zigzag"
    package = "zigzag-dse"
    extra = "zigzag"
    variable = "ARCHGYM_ZIGZAG_PYTHON"
    worker = "zigzag_worker.py"
    metric_names = (
        *("latency_cycles", "latency_ns", "energy_pj", "power_mw", "utilisation_rate"),
        *("dram_bytes", "edp_js"),
    )
    options: ClassVar[tuple[str, ...]] = (*PythonProgram.options, "optimize", "lpf_limit")

    def __init__(
        self,
        network: Network,
        hardware: Callable[[Mapping[str, Any]], Hardware],
        *,
        optimize: str = "latency",
        lpf_limit: int = 4,
        **arguments: Any,
    ) -> None:
        if optimize not in ("latency", "energy", "EDP"):
            raise UnknownNameError(
                "goal", optimize, ("latency", "energy", "EDP"), "simulator_options: optimize"
            )
        if not isinstance(lpf_limit, int) or not 1 <= lpf_limit <= 12:
            raise InvalidValueError(
                f"simulator_options: lpf_limit={lpf_limit!r} must be a whole number from 1 to 12"
            )
        self.optimize = optimize
        self.lpf_limit = lpf_limit
        super().__init__(network, hardware, **arguments)

    def not_covered(self, hardware: Hardware, network: Network) -> str:
        """Why ZigZag cannot run this, or an empty string."""
        if hardware.dataflow not in _SPATIAL:
            return f"it covers {', '.join(_SPATIAL)}, not {hardware.dataflow}"
        if hardware.lanes != 1:
            return f"its processing elements have one multiplier, not {hardware.lanes}"
        if not hardware.double_buffered:
            return "its buffers are double buffers wherever the data fit twice"
        if hardware.dram_links != "shared":
            return "its operands share the memory link"
        if not hardware.weight_rf_bytes or not hardware.output_rf_bytes:
            return "it needs register files for weights and for outputs"
        return ""

    def run(
        self, hardware: Hardware, layers: Sequence[Layer], folder: Path
    ) -> Sequence[LayerResult]:
        """Runs the layers, each as a separate workload."""
        job = {
            "accelerator": zigzag_accelerator(hardware),
            "optimize": self.optimize,
            "lpf_limit": self.lpf_limit,
            "layers": [zigzag_workload(layer, hardware) for layer in layers],
            "mappings": [zigzag_mapping(layer, hardware) for layer in layers],
        }
        found = self.call(job, folder)
        bytes_per_word = _bits(hardware.dram_bytes_per_cycle) / 8
        try:
            return [
                LayerResult(
                    cycles=figures["cycles"],
                    energy_pj=figures["energy_pj"],
                    dram_bytes=figures["dram_words"] * bytes_per_word,
                )
                for figures in found
            ]
        except (KeyError, TypeError):
            raise SimulationError(
                f"ZigZag gave no figures of some of the layers: {found}"
            ) from None


def zigzag_workload(layer: Layer, hardware: Hardware) -> dict[str, Any]:
    """A layer as ZigZag reads it; products of matrices are convolutions of 1 x 1."""
    dims = {
        **{"B": layer.batch, "G": layer.groups},
        **{"K": layer.K // layer.groups, "C": layer.C // layer.groups},
        **{"OY": layer.P, "OX": layer.Q, "FY": layer.R, "FX": layer.S},
    }
    return {
        "id": 0,
        "name": "layer",
        "operator_type": "Conv",
        "equation": "O[b][g][k][oy][ox]+=W[g][k][c][fy][fx]*I[b][g][c][iy][ix]",
        "dimension_relations": [f"ix={layer.stride}*ox+1*fx", f"iy={layer.stride}*oy+1*fy"],
        "loop_dims": list(dims),
        "loop_sizes": list(dims.values()),
        "operand_precision": {
            "W": hardware.word_bits,
            "I": hardware.word_bits,
            "O": hardware.accumulator_bits,
            "O_final": hardware.word_bits,
        },
        "operand_source": {"W": 0, "I": 0},
    }


def zigzag_mapping(layer: Layer, hardware: Hardware) -> list[dict[str, Any]]:
    """Which loops the array unrolls; of a depthwise layer groups take the place of channels."""
    unrolled = {}
    used: set[str] = set()
    sizes = (hardware.rows, hardware.columns)
    for number, (loop, size) in enumerate(zip(_SPATIAL[hardware.dataflow], sizes, strict=True), 1):
        of_group = {"K": layer.K, "C": layer.C}.get(loop, 0) == layer.groups > 1
        name = "G" if of_group and "G" not in used else loop
        used.add(name)
        unrolled[f"D{number}"] = [f"{name}, {size}"]
    links = {"O": "O", "W": "I2", "I": "I1"}
    return [{"name": "default", "spatial_mapping": unrolled, "memory_operand_links": links}]


def zigzag_accelerator(hardware: Hardware) -> dict[str, Any]:
    """The design as ZigZag reads it: memories from the inside outwards."""
    energy = accesses(hardware)
    memories: dict[str, Any] = {}
    for operand, size, width in (
        ("weight", hardware.weight_rf_bytes, hardware.word_bits),
        ("output", hardware.output_rf_bytes, hardware.accumulator_bits),
        ("input", hardware.input_rf_bytes, hardware.word_bits),
    ):
        if size * 8 >= width:
            cost = getattr(energy, f"{operand}_rf_pj")
            memories[f"{operand}_rf"] = _memory(8 * size, cost, [operand], (width, width), array=())
    ports = (_MIN_PORT_BITS, max(_bits(hardware.noc_bytes_per_cycle), _MIN_PORT_BITS))
    cost = energy.buffer_pj * ports[1] / 8
    split = hardware.buffer_split_bytes
    parts: list[tuple[str, int, list[str]]] = [
        ("buffer", hardware.buffer_bytes, ["input", "weight", "output"])
    ]
    if split is not None:
        names = ("input", "weight", "output")
        parts = [(f"{n}_buffer", size, [n]) for n, size in zip(names, split, strict=True)]
    for name, size, operands in parts:
        held = [o for o in operands if o != "weight" or not hardware.weights_bypass_buffer]
        if held:
            memories[name] = _memory(8 * size, cost, held, ports, array=("D1", "D2"))
    link = _bits(hardware.dram_bytes_per_cycle)
    memories["dram"] = _memory(
        _DRAM_BITS,
        energy.dram_pj * link / 8,
        list(_OPERANDS),
        (link, link),
        array=("D1", "D2"),
        shared_port=True,
    )
    return {
        "name": "archgym",
        "memories": memories,
        "operational_array": {
            "unit_energy": energy.mac_pj,
            "unit_area": 0.0,
            "dimensions": ["D1", "D2"],
            "sizes": [hardware.rows, hardware.columns],
            **({"systolic_dimensions": ["D1", "D2"]} if hardware.drains else {}),
        },
    }


def _memory(
    bits: int,
    cost_pj: float,
    operands: Sequence[str],
    port_bits: tuple[int, int],
    *,
    array: Sequence[str],
    shared_port: bool = False,
) -> dict[str, Any]:
    """One memory: ports, and who uses them for what.

    ``fh`` is from the level above, ``tl`` to the one below, and so on; partial sums go both ways.
    """
    reads, writes = [], []
    for operand in operands:
        name = _OPERANDS[operand]
        reads.append(f"{name}, tl")
        writes.append(f"{name}, fh")
        if name == "O":
            reads.append("O, th")
            writes.append("O, fl")
    width = {"bandwidth_min": port_bits[0], "bandwidth_max": port_bits[1]}
    if shared_port:
        uses = [("rw_port_1", "read_write", reads + writes)]
    elif not array:  # registers of one operand: a port for each use
        uses = [(f"r_port_{i}", "read", [use]) for i, use in enumerate(reads, 1)]
        uses += [(f"w_port_{i}", "write", [use]) for i, use in enumerate(writes, 1)]
    else:
        uses = [("r_port_1", "read", reads), ("w_port_1", "write", writes)]
    return {
        "size": bits,
        "r_cost": float(cost_pj),
        "w_cost": float(cost_pj),
        "area": 0.0,
        "latency": 1,
        "operands": [_OPERANDS[operand] for operand in operands],
        "ports": [
            {"name": name, "type": kind, **width, "allocation": allocation}
            for name, kind, allocation in uses
        ],
        "served_dimensions": list(array),
    }


def _bits(bytes_per_cycle: float) -> int:
    return max(1, int(8 * bytes_per_cycle))
