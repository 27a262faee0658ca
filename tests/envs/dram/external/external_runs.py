"""The small runs of DRAMSys and DRAMsim3 that are recorded in ``recorded``."""

from __future__ import annotations

import stat
import sys
import textwrap
from pathlib import Path

import numpy as np

from archgym.envs.dram.traces.trace import Trace

RECORDED = Path(__file__).parent / "recorded"

_INDEX = np.arange(48)
TRACE = Trace(
    "recorded",
    _INDEX * 7000,
    # Three rows of a bank and one of another, so that there are hits, misses and conflicts.
    64 * (_INDEX % 5) + (_INDEX % 4 // 3) * 2**17 + (_INDEX // 16) * 2**20,
    (_INDEX % 3 == 2).astype(np.uint8),
)
DESIGN = {
    "page_policy": "open_adaptive",
    "scheduler": "fr_fcfs_grp",
    "scheduler_buffer": "read_write",
    "request_buffer_size": 4,
    "resp_queue": "reorder",
    "refresh_policy": "none",
    "arbiter": "reorder",
    "max_active_transactions": 8,
    "address_mapping": "bgi_xor",
}
"""What DRAMSys was recorded with."""
DESIGN3 = {
    "page_policy": "open",
    "scheduler": "fr_fcfs",
    "scheduler_buffer": "bankwise",
    "request_buffer_size": 4,
    "refresh_policy": "none",
    "arbiter": "simple",
    "address_mapping": "bgi",
    "write_policy": "posted",
}
"""What DRAMsim3 was recorded with."""


def script(path: Path, body: str) -> Path:
    """An executable that runs some Python."""
    path.write_text(f"#!{sys.executable}\n{textwrap.dedent(body)}", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
