"""MAESTRO as a simulator of the accelerator environment: data-centric reuse analysis.

MAESTRO (Kwon et al., MICRO 2019) is not on PyPI: it is built from source. The executable is found
on PATH as ``maestro`` or through the environment variable ``ARCHGYM_MAESTRO``.
"""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.external.program import AcceleratorProgram, LayerResult
from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.errors import SimulationError
from archgym.simulators.external import find_program, run_program

__all__ = ["MaestroSimulator", "maestro_mapping", "read_maestro"]

_WHOLE_WINDOW = "TemporalMap(Sz(R),Sz(R)) R; TemporalMap(Sz(S),Sz(S)) S;"
_SLIDE = "TemporalMap(Sz(R),1) Y; TemporalMap(Sz(S),1) X;"
_DATAFLOWS: Mapping[str, str] = {
    "nvdla_ws": "SpatialMap(1,1) K; TemporalMap({c},{c}) C;"
    f"{_WHOLE_WINDOW} {_SLIDE} Cluster({{c}},P); SpatialMap(1,1) C; {_SLIDE} {_WHOLE_WINDOW}",
    "shidiannao_os": "TemporalMap(1,1) K; TemporalMap(1,1) C; SpatialMap(Sz(R),1) Y;"
    f"TemporalMap({{x}},{{c}}) X; {_WHOLE_WINDOW} Cluster({{c}},P); SpatialMap(Sz(S),1) X;",
    "eyeriss_rs": "TemporalMap(2,2) K; TemporalMap(4,4) C;"
    f"{_WHOLE_WINDOW} SpatialMap(Sz(R),1) Y; TemporalMap(Sz(S),1) X;"
    "Cluster(Sz(R),P); SpatialMap(1,1) Y; SpatialMap(1,1) R; TemporalMap(Sz(S),Sz(S)) S;",
    "xp_ws": "TemporalMap(1,1) K; TemporalMap(1,1) C; TemporalMap(Sz(R),1) Y;"
    f"SpatialMap(Sz(S),1) X; {_WHOLE_WINDOW}",
    "nlr_cp": f"TemporalMap(1,1) K; {_SLIDE} {_WHOLE_WINDOW} SpatialMap(1,1) C;",
}
"""The mapping of each dataflow: {c} are the processing elements of a cluster, {x} its inputs."""
_OF_DEPTHWISE = {"nvdla_ws"}
"""Dataflows whose innermost loops a depthwise layer does not have."""
_UNCONSTRAINED = 2**30
"""Bytes of buffers that MAESTRO shall not warn about, and words a cycle to memory."""


class MaestroSimulator(AcceleratorProgram):
    """Runs each layer in a separate process, in an empty folder, with a time limit.

    The mapping is the dataflow's own, not searched. The bandwidth to memory is not limited: MAESTRO
    would have every step wait for its whole working tile, whether it stays on the chip or not.
    MAESTRO sizes the buffers as the mapping needs them and does not model memory, so its area and
    power are those of the hungriest layer, at 28 nm and 1 GHz, and there is no energy that could be
    compared. Metrics: latency, utilisation, area and power.

    Args:
        network: what the designs run.
        hardware: the hardware of a design.
        time_limit_s: wall-clock time of one layer, s.
        threads: designs at a time; default one for each core.
        program: the executable; default as :func:`archgym.simulators.external.find_program` finds
            it.
    """

    name = "maestro"
    metric_names = ("latency_cycles", "latency_ns", "utilisation_rate", "area_um2", "power_mw")
    options: ClassVar[tuple[str, ...]] = (*AcceleratorProgram.options, "program")
    variable: ClassVar[str] = "ARCHGYM_MAESTRO"
    install: ClassVar[str] = (
        "Build MAESTRO (https://github.com/maestro-project/maestro; needs a C++17 compiler and "
        "Boost)."
    )

    def __init__(
        self,
        network: Network,
        hardware: Callable[[Mapping[str, Any]], Hardware],
        *,
        time_limit_s: float = 60.0,
        threads: int | None = None,
        program: Path | str | None = None,
    ) -> None:
        super().__init__(network, hardware, time_limit_s=time_limit_s, threads=threads)
        given = Path(program) if program else None
        self.program = given or find_program("maestro", self.variable, self.install)
        self.version = hashlib.sha256(self.program.read_bytes()).hexdigest()[:12]

    def not_covered(self, hardware: Hardware, network: Network) -> str:
        """Why MAESTRO cannot run this, or an empty string."""
        if hardware.dataflow not in _DATAFLOWS:
            return f"it covers {', '.join(_DATAFLOWS)}, not {hardware.dataflow}"
        if not hardware.double_buffered:
            return "its buffers are double buffers"
        for layer in network.layers:
            if layer.kind == "depthwise" and hardware.dataflow in _OF_DEPTHWISE:
                return f"{hardware.dataflow} has no mapping of a depthwise layer ({layer.name})"
        if hardware.noc_bytes_per_cycle < hardware.word_bytes:
            return "its noc bandwidth is at least one word a cycle"
        return ""

    def run(
        self, hardware: Hardware, layers: Sequence[Layer], folder: Path
    ) -> Sequence[LayerResult]:
        """Runs the layers one by one: inputs of a batch and groups one after another."""
        return [self._run_one(hardware, layer, folder) for layer in layers]

    def _run_one(self, hardware: Hardware, layer: Layer, folder: Path) -> LayerResult:
        mapping = folder / "mapping.m"
        mapping.write_text(maestro_mapping(layer, hardware), encoding="utf-8")
        for old in folder.glob("*.csv"):
            old.unlink()
        noc_words = int(hardware.noc_bytes_per_cycle / hardware.word_bytes)
        ran = run_program(
            [
                self.program,
                f"--Mapping_file={mapping.name}",
                f"--num_pes={hardware.pes}",
                f"--num_simd_lanes={hardware.lanes}",
                f"--l1_size_cstr={_UNCONSTRAINED}",
                f"--l2_size_cstr={_UNCONSTRAINED}",
                f"--noc_bw_cstr={noc_words}",
                f"--offchip_bw_cstr={_UNCONSTRAINED}",
                "--print_res=false",
                "--print_res_csv_file=true",
                "--print_log_file=false",
            ],
            folder,
            time_limit_s=self.time_limit_s,
        )
        written = list(folder.glob("*.csv"))
        if len(written) != 1:
            last = ran.stdout.strip().splitlines()[-1:] or ["nothing"]
            raise SimulationError(f"MAESTRO wrote no results; it printed {last[0]!r:.200}")
        found = read_maestro(written[0])
        times = layer.batch if layer.kind != "gemm" else 1
        if layer.kind != "depthwise":
            times *= layer.groups
        return LayerResult(
            cycles=times * found["Runtime (Cycles)"],
            area_um2=found["Area"],
            power_mw=found["Power"],
        )


def maestro_mapping(layer: Layer, hardware: Hardware) -> str:
    """The mapping file of one group of a layer (of all of a depthwise layer)."""
    depthwise = layer.kind == "depthwise"
    groups = 1 if depthwise else layer.groups
    rows = layer.P * (layer.batch if layer.kind == "gemm" else 1)
    dims = {
        "K": layer.K // layer.C if depthwise else layer.K // groups,
        "C": layer.C // groups,
        "R": layer.R,
        "S": layer.S,
        "Y": (rows - 1) * layer.stride + layer.R,
        "X": (layer.Q - 1) * layer.stride + layer.S,
    }
    flow = _DATAFLOWS[hardware.dataflow]
    if depthwise and hardware.dataflow == "eyeriss_rs":
        flow = flow.replace("TemporalMap(2,2) K; ", "")
    columns = hardware.columns
    directives = flow.format(c=columns, x=columns + layer.S - 1)
    return "\n".join(
        [
            "Network archgym {",
            "Layer L0 {",
            f"Type: {'DSCONV' if depthwise else 'CONV'}",
            f"Stride {{ X: {layer.stride}, Y: {layer.stride} }}",
            f"Dimensions {{ {', '.join(f'{name}: {size}' for name, size in dims.items())} }}",
            "Dataflow {",
            *(f"{directive.strip()};" for directive in directives.split(";") if directive.strip()),
            "}",
            "}",
            "}",
            "",
        ]
    )


def read_maestro(path: Path) -> dict[str, float]:
    """The numbers of MAESTRO's table of results, by column.

    Raises:
        SimulationError: if runtime, area or power are not there, or no numbers above zero.
    """
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        rows = list(csv.reader(file))
    found: dict[str, float] = {}
    if len(rows) >= 2:
        for column, cell in zip(rows[0], rows[1], strict=False):
            try:
                found[column.strip()] = float(cell)
            except ValueError:
                continue  # names
    for column in ("Runtime (Cycles)", "Area", "Power"):
        if not (math.isfinite(found.get(column, math.nan)) and found[column] > 0):
            raise SimulationError(f"MAESTRO gave {found.get(column)!r} for {column!r}")
    return found
