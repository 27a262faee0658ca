"""Runs SCALE-Sim 3 on a job; started by ``archgym.envs.accelerator.external.scalesim``.

Imports nothing of archgym, so that it also runs in an environment that has SCALE-Sim only. It
reads ``job.json`` and writes ``result.json``, the names of which are its two arguments.
"""

from __future__ import annotations

import contextlib
import io
import json
import resource
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Runs the convolutions, then the matrix products: SCALE-Sim takes one kind at a time."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    limit = job["memory_limit_bytes"]
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    found: dict[str, dict[str, float]] = {}
    for kind in ("conv", "gemm"):
        if job[kind]:
            found |= run(job, kind)
    Path(sys.argv[2]).write_text(json.dumps(found), encoding="utf-8")


def run(job: dict[str, Any], kind: str) -> dict[str, dict[str, float]]:
    """The figures of each layer of a kind, by the layer's name."""
    from scalesim.scale_sim import scalesim

    # It prints through os.system and exits on bad input; its output is not used.
    with contextlib.redirect_stdout(io.StringIO()):
        simulator = scalesim(
            save_disk_space=True,
            verbose=False,
            config=job["config"],
            topology=f"{kind}.csv",
            layout=f"{kind}_layout.csv",
            input_type_gemm=kind == "gemm",
        )
        simulator.run_scale("out")
    found = {}
    for name, layer in zip(job[kind], simulator.runner.single_layer_sim_object_list, strict=True):
        layer.calc_report_data()
        found[name] = {
            "cycles": float(layer.total_cycles),
            "stall_cycles": float(layer.stall_cycles),
            "sram_ifmap_reads": float(layer.ifmap_sram_reads),
            "sram_filter_reads": float(layer.filter_sram_reads),
            "sram_ofmap_writes": float(layer.ofmap_sram_writes),
            "dram_ifmap_reads": float(layer.ifmap_dram_reads),
            "dram_filter_reads": float(layer.filter_dram_reads),
            "dram_ofmap_writes": float(layer.ofmap_dram_writes),
        }
    return found


if __name__ == "__main__":
    main()
