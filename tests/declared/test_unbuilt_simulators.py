"""gem5 and ChampSim, which no package installs: what their files make of documented outputs."""

from __future__ import annotations

import importlib.util
import os
import struct
from pathlib import Path
from typing import Any

import pytest

import archgym
from tests.declared.conftest import EXAMPLES, copy_examples

STATS = """
---------- Begin Simulation Statistics ----------
simSeconds                                   0.000057                       # Number of seconds simulated (Second)
simTicks                                     57467000                       # Number of ticks simulated (Tick)
finalTick                                    57467000                       # Number of ticks from beginning of simulation (Tick)
simFreq                                  1000000000000                       # The number of ticks per simulated second ((Tick/Second))
hostSeconds                                      0.03                       # Real time elapsed on the host (Second)
simInsts                                        60000                       # Number of instructions simulated (Count)
system.clk_domain.clock                          1000                       # Clock period in ticks (Tick)
system.cpu.numCycles                           114934                       # Number of cpu cycles simulated (Cycle)
system.cpu.cpi                               1.915567                       # CPI: cycles per instruction (core level) ((Cycle/Count))
system.cpu.ipc                               0.522039                       # IPC: instructions per cycle (core level) ((Count/Cycle))
system.cpu.dcache.overallMissRate::cpu.data     0.064127                       # miss rate for overall accesses (Ratio)
system.cpu.dcache.overallMissRate::total     RATE                       # miss rate for overall accesses (Ratio)
system.l2.overallMissRate::total             0.981481                       # miss rate for overall accesses (Ratio)

---------- End Simulation Statistics   ----------

---------- Begin Simulation Statistics ----------
simSeconds                                   0.000001                       # Number of seconds simulated (Second)
---------- End Simulation Statistics   ----------
"""  # noqa: E501
"""Written after gem5's documentation, not by gem5: names, columns and units are as documented."""

GEM5 = """#!/bin/sh
for argument; do
    case $argument in
    --outdir=*) out=${argument#*=} ;;
    --l1d_size=128kB) rate=0.032 ;;
    --mem-type=LPDDR3_1600_1x32) echo "fatal: no such memory" >&2 ;;
    esac
done
sed "s/RATE/${rate:-0.064127}/" "$(dirname "$0")/stats.txt" > "$out/stats.txt"
"""


def script(path: Path, text: str) -> None:
    """A program that stands in for another one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def gem5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The file around gem5, with stand-ins for gem5 and gcc."""
    copy_examples(tmp_path)
    build = tmp_path / "gem5" / "build" / "X86"
    script(build / "gem5.opt", GEM5)
    (build / "stats.txt").write_text(STATS)
    script(tmp_path / "bin" / "gcc", "#!/bin/sh\n: > matmul\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return archgym.make(str(tmp_path / "gem5.yaml"))


def test_gem5s_statistics_are_read_by_their_documented_names(gem5: Any) -> None:
    outcome = gem5.evaluate(gem5.baseline_design)
    assert outcome.status == "ok", outcome.reason
    assert outcome.metrics == {
        "time_us": pytest.approx(57),  # of the first of two dumps
        "cycles_count": 114934,
        "ipc_rate": pytest.approx(0.522039),
        "l1d_misses_share": pytest.approx(0.064127),
        "storage_kb": 8 * 64 + 2048 + 192 / 4,
    }


def test_gem5_sees_the_knobs_and_says_what_it_does_not_take(gem5: Any) -> None:
    larger = gem5.evaluate({**gem5.baseline_design, "l1d_kb": 128})
    assert larger.metrics["l1d_misses_share"] == pytest.approx(0.032)
    refused = gem5.evaluate({**gem5.baseline_design, "memory": "LPDDR3_1600_1x32"})
    assert (refused.status, "fatal: no such memory" in refused.reason) == ("failed", True)


def test_a_missing_gem5_says_where_it_comes_from(gem5: Any, tmp_path: Path) -> None:
    (tmp_path / "gem5" / "build" / "X86" / "gem5.opt").unlink()
    with pytest.raises(archgym.errors.MissingDependencyError, match=r"git clone .*gem5"):
        gem5.simulate_baseline()


def test_a_trace_of_lackey_becomes_records_of_champsim() -> None:
    spec = importlib.util.spec_from_file_location("trace", EXAMPLES / "champsim_trace.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    lines = [
        "==7== Lackey, an example Valgrind tool\n",
        "I  00001000,4\n",
        " L 1ffe,8\n",
        "I  00001004,2\n",
        " M 2000,4\n",
        "I  00001000,4\n",
        "I  00001004,2\n",
        "I  00001006,2\n",
        "I  00001008,2\n",
    ]
    records = [struct.unpack("<Q8B6Q", one) for one in module.records(lines, 0, 4)]
    assert [len(one) for one in module.records(lines, 1, 2)] == [64, 64]
    assert [(one[0], one[1], one[2]) for one in records] == [
        (0x1000, 0, 0),
        (0x1004, 1, 1),  # jumps back: a branch, taken
        (0x1000, 0, 0),
        (0x1004, 1, 0),  # and now not taken
    ]
    assert records[0][9:] == (0, 0, 0x1FFE, 0, 0, 0)  # stores, then loads
    assert records[1][9:] == (0x2000, 0, 0x2000, 0, 0, 0)
    assert records[1][3:9] == (26, 0, 26, 25, 0, 0)  # the registers of a conditional branch
