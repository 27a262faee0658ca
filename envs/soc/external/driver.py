"""Runs systems through FARSI, in FARSI's own Python: it imports nothing of archgym.

Arguments: FARSI's folder, a file of systems (a JSON object a line, see
:func:`archgym.envs.soc.external.description.describe`), a file of memory figures in the form of
FARSI's cache of CACTI, and the seconds that one system may take. It prints a JSON object a system.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import types
from pathlib import Path
from typing import Any

_CLOCKS = [1, 4, 6, 8]
_SCALES = {
    "perf": 1,
    "energy": {"non_gpp": 0.064, "gpp": 1},
    "area": {"non_mem": 0.0374, "mem": 0.07, "gpp": 1},
}
_KNOBS = {
    "ip_freq_correction_ratio": 1,
    "gpp_freq_correction_ratio": 1,
    "ip_spawn": {
        "ip_loop_unrolling": {"incr": 2, "max_spawn_ip": 17, "spawn_mode": "geometric"},
        "ip_freq_range": _CLOCKS,
    },
    "mem_spawn": {"mem_freq_range": _CLOCKS},
    "ic_spawn": {"ic_freq_range": _CLOCKS},
    "tech_node_SF": _SCALES,
    "base_budget_scaling": {"latency": 1, "power": 1, "area": 1},
    "queue_available_size": [1, 2, 4, 8, 16],
    "burst_size_options": [1024],
    "task_spawn": {"parallel_task_cnt": 2, "serial_task_cnt": 3},
}
_KINDS = ("sram", "dram", "ic", "gpp", "ip")


class Farsi:
    """FARSI's modules, and one of its databases for each workload.

    Args:
        folder: of FARSI's sources.
        memories: file of memory figures.
    """

    def __init__(self, folder: Path, memories: Path) -> None:
        for name in ("pygraphviz", "pydot", "tkinter"):  # for pictures, which nobody sees here
            stub: Any = types.ModuleType(name)
            stub.N = stub.AGraph = None
            sys.modules.setdefault(name, stub)
        importlib.import_module("matplotlib").use("Agg")
        importlib.import_module("matplotlib.pyplot").style.use = lambda *_: None
        sys.path[:0] = [str(folder), str(folder / "data_collection" / "collection_utils")]
        home: Any = types.ModuleType("home_settings")
        home.home_dir = str(folder)
        sys.modules["home_settings"] = home
        settings: Any = importlib.import_module("settings")
        cacti: Any = types.ModuleType("settings.config_cacti")
        cacti.cact_bin_addr = cacti.cacti_param_addr = str(memories)
        cacti.cacti_data_log_file = str(memories)
        settings.config_cacti = sys.modules["settings.config_cacti"] = cacti
        self._main = importlib.import_module("top.main_FARSI")
        self._hardware = importlib.import_module("design_utils.components.hardware")
        self._design = importlib.import_module("design_utils.design")
        self._inputs = importlib.import_module("specs.database_input")
        config: Any = importlib.import_module("settings.config")
        config.transformation_selection_mode = "random"
        config.SA_depth = 1
        config.heuristic_type = "simple_greedy_one_sample"
        self._handlers: dict[str, Any] = {}

    def run(self, system: dict[str, Any]) -> dict[str, float]:
        """Latency, power, energy and area of a system, in s, W, J and m2."""
        workload = system["workload"]
        if workload not in self._handlers:
            self._handlers[workload] = self._handler(workload)
        handler = self._handlers[workload]
        design = self._built(handler, system)
        explorer = handler.dse
        stats = explorer.eval_design(design, explorer.database).dp.dp_stats
        latency = next(iter(stats.get_system_complex_metric("latency").values()))
        found = {
            name: stats.get_system_complex_metric(name) for name in ("power", "energy", "area")
        }
        return {"latency": latency[workload] if isinstance(latency, dict) else latency, **found}

    def _handler(self, workload: str) -> Any:
        population = {
            "db_mode": "parse",
            "hw_graph_mode": "generated_from_scratch",
            "workloads": {workload},
            "misc_knobs": _KNOBS,
        }
        exact = {"latency": 1, "energy": 1, "area": 1, "one_over_area": 1}
        sampling = {
            "mode": "exact",
            "population_size": 1,
            "reduction": "most_likely",
            "accuracy_percentage": dict.fromkeys(_KINDS, exact),
        }
        data = self._inputs.database_input_class(population)
        return self._main.set_up_FARSI_with_arch_gym(
            "", "1", "simple_run", data, sampling, population["hw_graph_mode"]
        )

    def _built(self, handler: Any, system: dict[str, Any]) -> Any:
        """The system as FARSI's objects."""
        database = handler.database
        chip = min(database.SOCsL, key=lambda one: one.get_budget("latency"))

        def block(name: str) -> Any:
            known = database.get_block_by_name(name)
            if known is None:
                raise KeyError(f"FARSI has no block {name}")
            made = database.sample_similar_block(known)
            made.set_SOC(chip.type, database.SOC_id)
            return made

        buses = [block(name) for name in system["buses"]]
        memories = [block(one["block"]) for one in system["memories"]]
        processors = [block(one["block"]) for one in system["processors"]]
        for made, one in zip(processors, system["processors"], strict=True):
            made.connect(buses[one["bus"]])
        for first, second in system["links"]:
            buses[first].connect(buses[second])
        for made, one in zip(memories, system["memories"], strict=True):
            buses[one["bus"]].connect(made)
        for name, number in system["task_processor"].items():
            task = database.get_task_by_name(name)
            processors[number].load_improved(task, task)
        for name, number in system["task_memory"].items():
            task = database.get_task_by_name(name)
            for child in task.get_children():
                memories[number].load_improved(task, child)
        design = self._design.ExDesignPoint(self._hardware.HardwareGraph(processors[0]))
        handler.dse.dh.load_tasks_to_read_mem_and_ic(design)
        design.hardware_graph.update_graph_without_prunning()
        design.hardware_graph.pipe_design()
        return design


def _stop(*_: object) -> None:
    raise TimeoutError


def main() -> None:
    """Runs every system of the file."""
    folder, systems, memories = (Path(argument) for argument in sys.argv[1:4])
    limit_s = float(sys.argv[4])
    out = sys.stdout
    signal.signal(signal.SIGALRM, _stop)
    with open(os.devnull, "w", encoding="utf-8") as nothing, contextlib.redirect_stdout(nothing):
        farsi = Farsi(folder, memories)
        with systems.open(encoding="utf-8") as lines:
            for line in lines:
                result: dict[str, Any]
                signal.setitimer(signal.ITIMER_REAL, limit_s)
                try:
                    result = farsi.run(json.loads(line))
                except TimeoutError:
                    result = {"timeout": True}
                except (Exception, SystemExit) as error:
                    result = {"error": f"{type(error).__name__}: {error}"[:300]}
                signal.setitimer(signal.ITIMER_REAL, 0)
                print(json.dumps(result), file=out, flush=True)


if __name__ == "__main__":
    main()
