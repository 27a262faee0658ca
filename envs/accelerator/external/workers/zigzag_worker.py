"""Runs ZigZag on a job; started by ``archgym.envs.accelerator.external.zigzag``.

Imports nothing of archgym, so that it also runs in an environment that has ZigZag only. It reads
``job.json`` and writes ``result.json``, the names of which are its two arguments.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Runs the layers of the job one by one: each is a separate workload for ZigZag."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    limit = job["memory_limit_bytes"]
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    logging.disable(logging.CRITICAL)
    pairs = zip(job["layers"], job["mappings"], strict=True)
    found = [run(job, layer, mapping) for layer, mapping in pairs]
    Path(sys.argv[2]).write_text(json.dumps(found), encoding="utf-8")


def run(
    job: dict[str, Any], layer: dict[str, Any], mapping: list[dict[str, Any]]
) -> dict[str, float]:
    """The figures of the best mapping of one layer."""
    import yaml
    from zigzag.api import get_hardware_performance_zigzag

    # The order of the memories is the hierarchy, so keys are not sorted.
    for name, content in (("accelerator", job["accelerator"]), ("mapping", mapping)):
        text = yaml.safe_dump(content, sort_keys=False)
        Path(f"{name}.yaml").write_text(text, encoding="utf-8")
    energy, latency, evaluations = get_hardware_performance_zigzag(
        [layer],
        "accelerator.yaml",
        "mapping.yaml",
        opt=job["optimize"],
        lpf_limit=job["lpf_limit"],
        dump_folder="out",
        loma_show_progress_bar=False,
    )
    best = evaluations[0][1][0][0]
    # Accesses of the outermost level, in words of its port.
    words = sum(sum(levels[-1].data.values()) for levels in best.memory_word_access.values())
    return {
        "energy_pj": float(energy),
        "cycles": float(latency),
        "mac_energy_pj": float(best.mac_energy),
        "ideal_cycles": float(best.ideal_cycle),
        "ideal_temporal_cycles": float(best.ideal_temporal_cycle),
        "dram_words": float(words),
    }


if __name__ == "__main__":
    main()
