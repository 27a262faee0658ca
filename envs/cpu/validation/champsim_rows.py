"""Rows of ChampSim as designs: caches, and the core around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from archgym.problem.reference import TableRow

__all__ = [
    "CORE_COLUMNS",
    "NotComparable",
    "champsim_core_row",
    "champsim_design",
    "champsim_misses",
    "champsim_stream",
    "stream_file",
]

CORE_COLUMNS: Final = (
    "rob_size",
    "lq_size",
    "sq_size",
    "scheduler_size",
    "fetch_width",
    "decode_width",
    "dispatch_width",
    "execute_width",
    "retire_width",
    "mispredict_penalty",
)
"""Columns that are attributes of the core under the same name."""
_LEVELS: Final = ("l1i", "l1d", "l2", "llc")
_REPLACEMENT: Final = {
    "lru": "lru",
    "srrip": "srrip",
    "drrip_mod": "drrip",
    "ship_mod": "ship",
}
_PREFETCHERS: Final = {
    "no": ("none", 1),
    "next_line": ("next_line", 1),
    "ip_stride": ("ip_stride", 3),
    "spp_dev": ("spp_dev", 1),
    "va_ampm_lite": ("ampm", 2),
}
_WINDOW: Final = (".win.champsimtrace.xz",)
_WHOLE: Final = (".champsimtrace.xz", ".champsimtrace", ".xz")


class NotComparable(Exception):
    """Why a row is skipped."""


def champsim_design(row: TableRow) -> dict[str, Any]:
    """The caches and prefetchers of a row.

    Raises:
        NotComparable: if the row has something that is not modelled.
    """
    if row.text("status", "ok") != "ok":
        raise NotComparable(f"status {row.text('status')!r}")
    policies = {level: row.text(f"{level}_repl") for level in ("l1d", "l2", "llc")}
    if "random" in policies.values():
        raise NotComparable("this ChampSim asks its random policy nothing: it evicts the first way")
    if row.text("build") == "stock" and any(policy != "lru" for policy in policies.values()):
        raise NotComparable("this build of ChampSim tells its policies of no fill")
    design: dict[str, Any] = {"line_bytes": 64, "llc_inclusion": "non_inclusive"}
    for level in ("l1i", "l1d", "l2", "llc"):
        sets, ways = row.whole(f"{level}_sets"), row.whole(f"{level}_ways")
        design[f"{level}_kib"], design[f"{level}_ways"] = sets * ways * 64 / 1024, ways
        if level in policies:
            if policies[level] not in _REPLACEMENT:
                raise NotComparable(f"{level}_repl {policies[level]!r} is not modelled")
            design[f"{level}_replacement"] = _REPLACEMENT[policies[level]]
    for level in ("l1d", "l2"):
        kind = row.text(f"{level}_pf")
        if kind not in _PREFETCHERS:
            raise NotComparable(f"{level}_pf {kind!r} is not modelled")
        name, degree = _PREFETCHERS[kind]
        design[f"{level}_prefetcher"] = name
        design[f"{level}_prefetch_degree"] = degree
    return design


def champsim_misses(row: TableRow, instructions: int) -> dict[str, float]:
    """Misses that joined none on its way, without prefetches, in a thousand instructions.

    Write-backs are no misses of the levels that they reach; stores are of the first level.

    Args:
        row: the row.
        instructions: how many instructions ours has of the program. Figures are shares of these, so
            that counts are compared: ChampSim retires up to a cycle's more than it is asked for,
            and has fetched what follows.
    """
    kilo = instructions / 1000
    figures = {}
    for level in _LEVELS:
        missed = _unique(row, level, "")
        for kind in ("_prefetch", "_write") if level in ("l2", "llc") else ("_prefetch",):
            missed -= _unique(row, level, kind)
        figures[f"{level}_mpki"] = missed / kilo
    return figures


def _unique(row: TableRow, level: str, kind: str) -> int:
    """Misses of a kind that joined none on its way."""
    merges = f"{level}{kind}_merge" if kind else f"{level}_mshr_merge"
    return row.whole(f"{level}{kind}_miss", "0") - row.whole(merges, "0")


def champsim_core_row(row: TableRow, folder: Path) -> tuple[str, Any, Any, dict[str, float]]:
    """Program, setting, design and figures of a row that has a core.

    Raises:
        NotComparable: if the row has something that is not modelled.
    """
    design = champsim_design(row)
    del design["line_bytes"]
    design |= {name: row.whole(name) for name in CORE_COLUMNS}
    design["branch_predictor"] = row.text("branch")
    for level in _LEVELS:
        design[f"{level}_latency"] = row.whole(f"{level}_lat")
        design[f"{level}_mshrs"] = row.whole(f"{level}_mshr")
    figures = {"ipc_rate": float(row.text("ipc")), "branch_mpki": float(row.text("branch_mpki"))}
    case = row.text("trace")
    asked = row.whole("requested_instructions")
    if row.text("llc_mshr_merge"):
        figures |= champsim_misses(row, asked)
    file = {"file": str(champsim_stream(row, folder)), "instructions": asked}
    return case, {"workload": file, "counting": "champsim"}, design, figures


def champsim_stream(row: TableRow, folder: Path) -> Path:
    """The instruction stream of a row, whose ``kind`` begins with ``full`` for whole programs.

    Raises:
        NotComparable: if the folder has none.
    """
    return stream_file(folder, row.text("trace"), whole=row.text("kind").startswith("full"))


def stream_file(folder: Path, name: str, *, whole: bool = False) -> Path:
    """The instruction stream of a program.

    Args:
        folder: that holds it.
        name: of the program.
        whole: whether a window of the program will not do.

    Raises:
        NotComparable: if the folder has none.
    """
    if Path(name).name == name:
        for ending in (".npz", *(() if whole else _WINDOW), *_WHOLE):
            if (folder / f"{name}{ending}").is_file():
                return folder / f"{name}{ending}"
    raise NotComparable(f"the folder {folder} has no instruction stream {name!r}")
