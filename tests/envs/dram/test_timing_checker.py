"""The timing checker of the tests finds each kind of violation when one is put in."""

from __future__ import annotations

import numpy as np
import pytest

from archgym.envs.dram.controller import COMMANDS
from archgym.envs.dram.device import load_device

from .timing_checker import violations

# Clocks: tRCD 10, tRP 10, tRAS 28, tRC 38, tRRD 5, tFAW 24, tCCD 4, tRTP 6, tRFC 88;
# write to precharge 8 + 4 + 12 = 24, write to read 8 + 4 + 6 = 18, read to write 10 + 4 + 2 - 8.
DDR3 = load_device("DDR3-1600")
# Clocks: tRRD 4 / 6, tCCD 4 / 6, write to read 16 + 4 + 3 / 9.
DDR4 = load_device("DDR4-2400")

Log = list[tuple[int, str, int, int]]


def found(log: Log, device: object = DDR3) -> str:
    rows = np.array([(cycle, COMMANDS.index(name), b, r) for cycle, name, b, r in log], np.int64)
    return "\n".join(violations(device, rows))  # type: ignore[arg-type]


GOOD: Log = [
    (0, "act", 0, 7),
    (5, "act", 1, 3),
    (10, "rd", 0, 7),
    (18, "wr", 1, 3),
    (36, "rda", 0, 7),
    (44, "wr", 1, 3),
    (68, "pre", 1, 3),
    (78, "refab", -1, -1),
    (166, "act", 0, 1),
]


def test_a_correct_log_passes() -> None:
    assert found(GOOD) == ""


@pytest.mark.parametrize("index", range(1, len(GOOD)))
def test_every_command_of_it_is_as_early_as_it_may_be(index: int) -> None:
    cycle, name, bank, row = GOOD[index]
    early = [*GOOD[:index], (cycle - 1, name, bank, row), *GOOD[index + 1 :]]
    assert found(early) != ""


BAD: dict[str, Log] = {
    "tRCD": [(0, "act", 0, 1), (9, "rd", 0, 1)],
    "tRAS": [(0, "act", 0, 1), (27, "pre", 0, 1)],
    "tRP": [(0, "act", 0, 1), (30, "pre", 0, 1), (39, "act", 0, 1)],
    "tRC": [(0, "act", 0, 1), (10, "rda", 0, 1), (37, "act", 0, 1)],
    "tRRD": [(0, "act", 0, 1), (4, "act", 1, 1)],
    "tFAW": [(5 * i, "act", i, 1) for i in range(4)] + [(23, "act", 4, 1)],
    "tCCD": [(0, "act", 0, 1), (10, "rd", 0, 1), (13, "rd", 0, 1)],
    "tRTP": [(0, "act", 0, 1), (30, "rd", 0, 1), (35, "pre", 0, 1)],
    "tWR": [(0, "act", 0, 1), (10, "wr", 0, 1), (33, "preab", -1, -1)],
    "tWTR": [(0, "act", 0, 1), (10, "wr", 0, 1), (27, "rd", 0, 1)],
    "read to write": [(0, "act", 0, 1), (10, "rd", 0, 1), (17, "wr", 0, 1)],
    "tRFC": [(0, "refab", -1, -1), (87, "act", 0, 1)],
    "busy bus": [(0, "act", 0, 1), (10, "wr", 0, 1), (11, "rd", 0, 1)],
    "in the clock of": [(5, "act", 0, 1), (5, "act", 1, 1)],
    "closed bank 0": [(0, "pre", 0, 1)],
    "activate of the open bank": [(0, "act", 0, 1), (50, "act", 0, 2)],
    "to row 2 of bank 0, open: 1": [(0, "act", 0, 1), (20, "rd", 0, 2)],
    "to row 1 of bank 3, open: None": [(20, "rd", 3, 1)],
    "banks \\[0\\] open": [(0, "act", 0, 1), (50, "refab", -1, -1)],
}


@pytest.mark.parametrize("rule", BAD)
def test_injected_violation(rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        raise ValueError(found(BAD[rule]))


def test_refresh_waits_for_the_auto_precharge() -> None:
    # RDA 10, row closed at 28 (tRAS), refresh from 38 on.
    log: Log = [(0, "act", 0, 1), (10, "rda", 0, 1), (38, "refab", -1, -1)]
    assert found(log) == ""
    assert "tRP" in found([*log[:2], (37, "refab", -1, -1)])


def test_auto_precharge_waits_for_an_earlier_write() -> None:
    # Write at 10: recovered at 34, so a read with auto-precharge (tRTP 6) not before 28.
    assert "tWR" not in found([(0, "act", 0, 1), (10, "wr", 0, 1), (28, "rda", 0, 1)])
    short = [(0, "act", 0, 1), (10, "wr", 0, 1), (27, "rda", 0, 1)]
    assert "tWR" in found(short)


def test_bank_groups() -> None:
    # Banks 0 and 1 share a group, 4 is in the next.
    assert found([(0, "act", 0, 1), (4, "act", 4, 1)], DDR4) == ""
    assert "tRRD_L" in found([(0, "act", 0, 1), (5, "act", 1, 1)], DDR4)
    opened: Log = [(0, "act", 0, 1), (6, "act", 1, 1), (12, "act", 4, 1)]
    assert found([*opened, (30, "rd", 0, 1), (34, "rd", 4, 1)], DDR4) == ""
    assert "tCCD" in found([*opened, (30, "rd", 0, 1), (35, "rd", 1, 1)], DDR4)
    assert found([*opened, (30, "wr", 0, 1), (53, "rd", 4, 1)], DDR4) == ""
    assert "tWTR" in found([*opened, (30, "wr", 0, 1), (58, "rd", 1, 1)], DDR4)
