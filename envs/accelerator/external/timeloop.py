"""Timeloop as a simulator of the accelerator environment: its mapper on a row-stationary array.

Timeloop (Parashar et al., ISPASS 2019) is not on PyPI: it is built from source. The executable is
found on PATH as ``timeloop-mapper`` or through the environment variable ``ARCHGYM_TIMELOOP``. The
input is the form of versions 2 and 3, whose sample ``eyeriss-256`` has the same constraints.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.external.program import AcceleratorProgram, LayerResult
from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.errors import InvalidValueError, SimulationError
from archgym.simulators.external import find_program, run_program

__all__ = ["TimeloopSimulator", "read_timeloop", "timeloop_input"]

_STATS = "timeloop-mapper.stats.txt"
_NUMBER = r"([0-9.]+(?:e[+-]?[0-9]+)?)"
_PATTERNS = {
    "cycles": rf"^Cycles: {_NUMBER}",
    "energy_uj": rf"^Energy: {_NUMBER} uJ",
    "utilization": rf"^Utilization: {_NUMBER}",
}


class TimeloopSimulator(AcceleratorProgram):
    """Runs each layer in a separate process, in an empty folder, with a time limit.

    It covers the row-stationary dataflow: filter columns, channels and filters down a column of the
    array, output columns and filters along a row, weights past the global buffer. The search for a
    mapping draws at random, on one thread. Metrics: latency, utilisation, bytes moved to and from
    memory, and energy by Timeloop's own tables of energies.

    Args:
        network: what the designs run.
        hardware: the hardware of a design.
        time_limit_s: wall-clock time of one layer, s.
        threads: designs at a time; default one for each core.
        program: the executable; default as :func:`archgym.simulators.external.find_program` finds
            it.
        victory_condition: mappings in a row without a better one after which it stops.
    """

    name = "timeloop"
    metric_names = (
        *("latency_cycles", "latency_ns", "energy_pj", "power_mw", "utilisation_rate"),
        *("dram_bytes", "edp_js"),
    )
    options: ClassVar[tuple[str, ...]] = (
        *AcceleratorProgram.options,
        "program",
        "victory_condition",
    )
    variable: ClassVar[str] = "ARCHGYM_TIMELOOP"
    install: ClassVar[str] = "Build Timeloop 3 (https://github.com/NVlabs/timeloop, tag v3.0.3)."

    def __init__(
        self,
        network: Network,
        hardware: Callable[[Mapping[str, Any]], Hardware],
        *,
        time_limit_s: float = 120.0,
        threads: int | None = None,
        program: Path | str | None = None,
        victory_condition: int = 200,
    ) -> None:
        if not isinstance(victory_condition, int) or not 1 <= victory_condition <= 10**9:
            raise InvalidValueError(
                f"simulator_options: victory_condition={victory_condition!r} must be a whole "
                "number of at least 1"
            )
        super().__init__(network, hardware, time_limit_s=time_limit_s, threads=threads)
        self.victory_condition = victory_condition
        given = Path(program) if program else None
        self.program = given or find_program("timeloop-mapper", self.variable, self.install)
        self.version = hashlib.sha256(self.program.read_bytes()).hexdigest()[:12]

    def not_covered(self, hardware: Hardware, network: Network) -> str:
        """Why this form of input cannot express the design, or an empty string."""
        if hardware.dataflow != "eyeriss_rs":
            return f"it covers eyeriss_rs, not {hardware.dataflow}"
        if hardware.lanes != 1:
            return f"its processing elements have one multiplier, not {hardware.lanes}"
        if not hardware.weights_bypass_buffer:
            return (
                "weights go past its global buffer: with space 'template' it needs "
                "hardware={'weights_bypass_buffer': True}, space 'eyeriss' is that way"
            )
        if hardware.buffer_split_bytes is not None:
            return "inputs and outputs share its global buffer"
        for layer in network.layers:
            if hardware.rows < layer.S:
                return f"a column holds the {layer.S} filter columns of {layer.name}"
        return ""

    def run(
        self, hardware: Hardware, layers: Sequence[Layer], folder: Path
    ) -> Sequence[LayerResult]:
        """Runs one group of each layer."""
        return [self._run_one(hardware, layer, folder) for layer in layers]

    def _run_one(self, hardware: Hardware, layer: Layer, folder: Path) -> LayerResult:
        import yaml

        stats = folder / _STATS
        stats.unlink(missing_ok=True)
        data = timeloop_input(layer, hardware, self.victory_condition)
        (folder / "run.yaml").write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
        run_program([self.program, "run.yaml"], folder, time_limit_s=self.time_limit_s)
        if not stats.is_file():
            raise SimulationError(f"Timeloop found no mapping of layer {layer.name}")
        found = read_timeloop(stats.read_text(encoding="utf-8", errors="replace"))
        return LayerResult(
            cycles=layer.groups * found["cycles"],
            energy_pj=layer.groups * found["energy_uj"] * 1e6,
            dram_bytes=layer.groups * found["dram_accesses"] * hardware.word_bytes,
        )


def timeloop_input(layer: Layer, hardware: Hardware, victory_condition: int) -> dict[str, Any]:
    """Design, constraints, one group of a layer and mapper, as one YAML document."""
    bits, columns, pes = hardware.word_bits, hardware.columns, hardware.pes
    registers = [
        ("PsumRegFile", hardware.output_rf_bytes / hardware.accumulator_bytes),
        ("WeightRegFile", hardware.weight_rf_bytes / hardware.word_bytes),
        ("InputRegFile", hardware.input_rf_bytes / hardware.word_bytes),
    ]
    storage: list[dict[str, Any]] = [
        {
            "name": name,
            "entries": max(1, int(words)),
            "instances": pes,
            "meshX": columns,
            "word-bits": bits,
            "read_bandwidth": 2,
            "write_bandwidth": 2,
        }
        for name, words in registers
    ]
    noc = hardware.noc_bytes_per_cycle / hardware.word_bytes
    dram = hardware.dram_bytes_per_cycle / hardware.word_bytes
    storage += [
        # Holds nothing: it is the level of a column, along which work is spread.
        {
            "name": "DummyBuffer",
            "entries": 0,
            "instances": columns,
            "meshX": columns,
            "word-bits": bits,
        },
        {
            "name": "GlobalBuffer",
            "entries": int(hardware.buffer_bytes / hardware.word_bytes),
            "instances": 1,
            "meshX": 1,
            "word-bits": bits,
            "block-size": 4,
            "read_bandwidth": noc,
            "write_bandwidth": noc,
        },
        {
            "name": "DRAM",
            "technology": "DRAM",
            "instances": 1,
            "word-bits": bits,
            "read_bandwidth": dram,
            "write_bandwidth": dram,
        },
    ]
    return {
        "arch": {
            "arithmetic": {"name": "MACs", "instances": pes, "meshX": columns, "word-bits": bits},
            "storage": storage,
        },
        "mapspace": {"constraints": _constraints()},
        "mapper": {
            "algorithm": "random-pruned",
            "optimization-metrics": ["delay", "energy"],
            "num-threads": 1,
            "victory-condition": victory_condition,
            "timeout": 100 * victory_condition,
            "live-status": False,
        },
        "problem": {
            "shape": "cnn-layer",
            **{"R": layer.R, "S": layer.S, "P": layer.P, "Q": layer.Q},
            **{"C": layer.C // layer.groups, "K": layer.K // layer.groups, "N": layer.batch},
            **{"Wstride": layer.stride, "Hstride": layer.stride, "Wdilation": 1, "Hdilation": 1},
        },
    }


def _constraints() -> list[dict[str, Any]]:
    """What makes the mapping row-stationary: who keeps what, and which loops may be where."""
    spaces = ("Weights", "Inputs", "Outputs")
    kept = {
        "PsumRegFile": ("Outputs",),
        "WeightRegFile": ("Weights",),
        "InputRegFile": ("Inputs",),
        "DummyBuffer": (),
        "GlobalBuffer": ("Inputs", "Outputs"),
    }
    found: list[dict[str, Any]] = [
        {
            "target": level,
            "type": "datatype",
            "keep": list(keep),
            "bypass": [space for space in spaces if space not in keep],
        }
        for level, keep in kept.items()
    ]
    spatial = {"DummyBuffer": ("N1 P1 Q1 R1 S0", 4), "GlobalBuffer": ("N1 C1 P1 R1 S1", 7)}
    orders = {"DummyBuffer": "NPQRSCK", "GlobalBuffer": "NCPRSQK"}
    found += [
        {
            "target": level,
            "type": "spatial",
            "factors": factors,
            "permutation": orders[level],
            "split": split,
        }
        for level, (factors, split) in spatial.items()
    ]
    temporal = {
        "PsumRegFile": ("N1 C1 P1 Q1 R1 S1", "NCPQRSK"),
        "WeightRegFile": ("N1 K1 P1 Q1 S1 R0", "NKPQSCR"),
        "InputRegFile": ("N1 K1 C1 P1 Q1 R1 S1", "NKCPQRS"),
        "DummyBuffer": ("N1 K1 C1 P1 Q1 R1 S1", "NKCPQRS"),
        "GlobalBuffer": ("Q1 R1 S1 C1 P0", "QRSCPNK"),
        "DRAM": ("R1 S1 P1", "RSPCKNQ"),
    }
    found += [
        {"target": level, "type": "temporal", "factors": factors, "permutation": order}
        for level, (factors, order) in temporal.items()
    ]
    return found


def read_timeloop(text: str) -> dict[str, float]:
    """Cycles, energy (uJ), utilisation, and accesses of the memory, from the mapper's statistics.

    Raises:
        SimulationError: if one of them is not there.
    """
    found = {}
    for name, pattern in _PATTERNS.items():
        # The summary is at the end; a level may print a line of the same form before it.
        numbers = re.findall(pattern, text, re.MULTILINE)
        if not numbers:
            raise SimulationError(f"Timeloop printed no {name}")
        found[name] = float(numbers[-1])
    _, has_memory, memory = text.partition("=== DRAM ===")
    accesses = re.findall(rf"Total scalar accesses\s*:\s*{_NUMBER}", memory)
    if not has_memory or not accesses:
        raise SimulationError("Timeloop printed no accesses of the memory")
    found["dram_accesses"] = sum(map(float, accesses))
    return found
