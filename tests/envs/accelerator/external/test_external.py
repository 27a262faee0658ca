"""External simulators behind the environment: recorded output, failures, real programs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import archgym
from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.external.maestro import (
    MaestroSimulator,
    maestro_mapping,
    read_maestro,
)
from archgym.envs.accelerator.external.program import AcceleratorProgram, LayerResult, summed
from archgym.envs.accelerator.external.scalesim import (
    ScaleSimSimulator,
    scalesim_config,
    scalesim_figures,
)
from archgym.envs.accelerator.external.timeloop import (
    TimeloopSimulator,
    read_timeloop,
    timeloop_input,
)
from archgym.envs.accelerator.external.zigzag import (
    ZigZagSimulator,
    zigzag_accelerator,
    zigzag_mapping,
    zigzag_workload,
)
from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.errors import (
    InvalidValueError,
    MissingDependencyError,
    NotCoveredError,
    SimulationError,
    UnknownNameError,
)
from archgym.simulators.external import find_program
from tests.envs.dram.external.external_runs import script

RECORDED = Path(__file__).parent / "recorded"
CONV = Layer("conv", "conv", K=16, C=8, R=3, S=3, P=14, Q=14)
GROUPED = Layer("grouped", "conv", K=16, C=8, R=3, S=3, P=14, Q=14, groups=2)
DEPTHWISE = Layer.depthwise("dw", 8, 3, 3, 14, 14)
GEMM = Layer.from_gemm("fc", M=4, N=10, K=32)
SYSTOLIC = Hardware(
    "systolic_ws",
    rows=8,
    columns=8,
    buffer_bytes=3 * 65536,
    buffer_split_bytes=(65536, 65536, 65536),
    dram_links="separate",
)
NVDLA = Hardware("nvdla_ws", rows=8, columns=8, noc_bytes_per_cycle=16, dram_bytes_per_cycle=8)
EYERISS = Hardware("eyeriss_rs", rows=12, columns=14, weights_bypass_buffer=True)


def network(*layers: Layer) -> Network:
    return Network("test", layers, tuple(range(1, len(layers) + 1)))


def always(hardware: Hardware) -> Callable[[Any], Hardware]:
    return lambda design: hardware


# -- what all have in common ---------------------------------------------------------------------


class Made(AcceleratorProgram):
    """Gives fixed results."""

    name = "made"
    version = "1"
    metric_names = ("latency_cycles", "energy_pj")
    results: tuple[LayerResult, ...] = ()

    def not_covered(self, hardware: Hardware, network: Network) -> str:
        return "" if hardware.lanes == 1 else "one lane only"

    def run(self, hardware: Hardware, layers: Any, folder: Path) -> tuple[LayerResult, ...]:
        assert folder.is_dir()
        assert not list(folder.iterdir())
        return self.results


def test_layers_run_one_after_another_as_often_as_they_occur() -> None:
    results = (LayerResult(100.0, 5000.0, 64.0), LayerResult(10.0, 200.0, 8.0))
    found = summed(results, network(CONV, GEMM), NVDLA)
    assert found["latency_cycles"] == 120.0
    assert found["energy_pj"] == 5400.0
    assert found["dram_bytes"] == 80.0
    assert found["utilisation_rate"] == (CONV.macs + 2 * GEMM.macs) / (120 * 64)
    # mW = pJ / ns, and J s = pJ x ns x 1e-21
    assert found["power_mw"] == pytest.approx(5400 / found["latency_ns"])
    assert found["edp_js"] == pytest.approx(5400 * found["latency_ns"] * 1e-21)


def test_what_one_layer_lacks_the_network_lacks() -> None:
    results = (LayerResult(100.0, 5000.0), LayerResult(10.0))
    found = summed(results, network(CONV, GEMM), NVDLA)
    assert set(found) == {"latency_cycles", "latency_ns", "utilisation_rate"}


def test_a_design_is_as_large_as_its_hungriest_layer() -> None:
    results = (LayerResult(1.0, area_um2=30.0), LayerResult(1.0, area_um2=50.0))
    assert summed(results, network(CONV, GEMM), NVDLA)["area_um2"] == 50.0


def test_a_result_for_every_layer_is_needed() -> None:
    made = Made(network(CONV, GEMM), always(NVDLA))
    made.results = (LayerResult(1.0, 1.0),)
    with pytest.raises(SimulationError, match="1 results for 2 layers"):
        made.simulate_one({})
    made.results = (LayerResult(0.0, 1.0),) * 2
    with pytest.raises(SimulationError, match="take 0"):
        made.simulate_one({})


def test_what_is_not_covered_is_said() -> None:
    made = Made(network(CONV), always(NVDLA.replace(lanes=2)))
    with pytest.raises(NotCoveredError, match="made: one lane only"):
        made.simulate_one({})


@pytest.mark.parametrize("limit", [0, -1, "10", True])
def test_bad_time_limits_are_refused(limit: Any) -> None:
    with pytest.raises(InvalidValueError, match="time_limit_s"):
        Made(network(CONV), always(NVDLA), time_limit_s=limit)


@pytest.mark.parametrize(
    ("simulator", "hardware", "reason"),
    [
        (ScaleSimSimulator, NVDLA, "systolic dataflows only"),
        (ScaleSimSimulator, SYSTOLIC.replace(lanes=2), "one multiplier"),
        (ScaleSimSimulator, SYSTOLIC.replace(double_buffered=False), "double buffers"),
        (ScaleSimSimulator, SYSTOLIC.replace(dram_bytes_per_cycle=0.5), "one word a cycle"),
        (ZigZagSimulator, SYSTOLIC, "not systolic_ws"),
        (ZigZagSimulator, NVDLA.replace(weight_rf_bytes=0), "register files"),
        (ZigZagSimulator, NVDLA.replace(dram_links="separate"), "share the memory link"),
        (MaestroSimulator, SYSTOLIC, "not systolic_ws"),
        (TimeloopSimulator, NVDLA, "covers eyeriss_rs"),
        (TimeloopSimulator, EYERISS.replace(rows=2), "3 filter columns of conv"),
    ],
)
def test_designs_that_a_program_cannot_express(
    simulator: Any, hardware: Hardware, reason: str
) -> None:
    made = simulator.__new__(simulator)  # the program is not needed for this
    assert reason in made.not_covered(hardware, network(CONV))


def test_designs_that_a_program_can_express() -> None:
    for simulator, hardware in (
        (ScaleSimSimulator, SYSTOLIC),
        (ZigZagSimulator, NVDLA),
        (MaestroSimulator, NVDLA),
        (TimeloopSimulator, EYERISS),
    ):
        made = simulator.__new__(simulator)
        assert made.not_covered(hardware, network(CONV)) == ""


# -- SCALE-Sim and ZigZag: Python packages -------------------------------------------------------


def python_with(package: str, variable: str) -> bool:
    return bool(os.environ.get(variable)) or find_spec(package) is not None


needs_scalesim = pytest.mark.skipif(
    not python_with("scalesim", ScaleSimSimulator.variable),
    reason="the extra 'scalesim' is not installed",
)
needs_zigzag = pytest.mark.skipif(
    not python_with("zigzag", ZigZagSimulator.variable),
    reason="the extra 'zigzag' is not installed",
)


@pytest.mark.parametrize("simulator", [ScaleSimSimulator, ZigZagSimulator])
def test_a_missing_package_says_what_to_install(
    simulator: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = script(tmp_path / "python", "raise SystemExit('no such package')")
    install = rf"pip install 'archgym\[{simulator.extra}\]'"
    with pytest.raises(MissingDependencyError, match=install):
        simulator(network(CONV), always(NVDLA), program=python)
    monkeypatch.setenv(simulator.variable, str(tmp_path / "missing"))
    with pytest.raises(MissingDependencyError, match=f"{simulator.variable} is .*a Python interp"):
        simulator(network(CONV), always(NVDLA))


FAKE_PYTHON = """
    import json, pathlib, sys
    if "-c" in sys.argv:
        print("3.0.0")
        raise SystemExit
    here = pathlib.Path(__file__).parent
    job = json.load(open("job.json"))
    files = {p.name: p.read_text() for p in pathlib.Path(".").iterdir()}
    (here / "seen.json").write_text(json.dumps({"job": job, "files": files}))
    pathlib.Path("result.json").write_text((here / "answer.json").read_text())
"""


def test_scalesim_gets_convolutions_and_products_in_files_of_their_own(tmp_path: Path) -> None:
    python = script(tmp_path / "python", FAKE_PYTHON)
    figures = {
        "cycles": 1000,
        "dram_ifmap_reads": 100,
        "dram_filter_reads": 10,
        "dram_ofmap_writes": 1,
    }
    answer = {f"L{i}": figures for i in range(3)}
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    simulator = ScaleSimSimulator(network(CONV, GROUPED, GEMM), always(SYSTOLIC), program=python)
    found = simulator.simulate_one({})
    assert simulator.version == "3.0.0"
    # 1 x CONV, 2 x GROUPED of two groups, 3 x GEMM
    assert found["latency_cycles"] == 1000 * (1 + 2 * 2 + 3)
    assert found["dram_bytes"] == 111 * (1 + 2 * 2 + 3)
    files = json.loads((tmp_path / "seen.json").read_text())["files"]
    assert files["conv.csv"].splitlines()[1:] == [
        "L0, 16, 16, 3, 3, 8, 16, 1,",
        "L1, 16, 16, 3, 3, 4, 8, 1,",
    ]
    assert files["gemm.csv"].splitlines()[1:] == ["L2, 4, 10, 32,"]
    assert len(files["conv_layout.csv"].splitlines()) == 3


def test_scalesim_starts_from_what_it_gives_and_covers(tmp_path: Path) -> None:
    python = script(tmp_path / "python", FAKE_PYTHON)
    figures = {
        "cycles": 1000,
        "dram_ifmap_reads": 100,
        "dram_filter_reads": 10,
        "dram_ofmap_writes": 1,
    }
    (tmp_path / "answer.json").write_text(json.dumps({"L0": figures}))
    arguments: dict[str, Any] = {
        "workload": {"network": "resnet18", "only": ["layer4.0.downsample"]},
        "simulator": "scalesim",
        "simulator_options": {"program": str(python)},
    }
    env = archgym.make("Accelerator-v0", **arguments)
    assert list(env.objective.metric_names()) == ["latency_ns"]
    assert env.baseline_design["dataflow"] == "systolic_ws"
    assert env.evaluate(env.baseline_design).metrics["latency_cycles"] == 1000
    with pytest.raises(InvalidValueError, match="it gives latency_cycles"):
        archgym.make("Accelerator-v0", objective="minimize edp_js", **arguments)


def test_a_shared_link_gives_scalesim_a_third_for_each_operand() -> None:
    shared = SYSTOLIC.replace(dram_links="shared", dram_bytes_per_cycle=24.0, word_bits=16)
    config = scalesim_config(shared)
    assert "IfmapSRAMBankBandwidth = 4" in config
    assert "IfmapSramSzkB = 32" in config  # of words, which have two bytes


def test_a_worker_that_dies_or_answers_nonsense_fails_the_design(tmp_path: Path) -> None:
    python = script(tmp_path / "python", FAKE_PYTHON)
    simulator = ScaleSimSimulator(network(CONV), always(SYSTOLIC), program=python)
    with pytest.raises(SimulationError, match="FileNotFoundError"):
        simulator.simulate_one({})
    for answer in ("{nonsense", "[]", '{"L7": {}}'):
        (tmp_path / "answer.json").write_text(answer)
        with pytest.raises(SimulationError, match=r"no result|no figures"):
            simulator.simulate_one({})


def test_a_worker_that_hangs_is_ended(tmp_path: Path) -> None:
    hangs = "import sys, time\nprint('3.0.0') if '-c' in sys.argv else time.sleep(60)"
    python = script(tmp_path / "python", hangs)
    simulator = ScaleSimSimulator(network(CONV), always(SYSTOLIC), program=python, time_limit_s=1.0)
    with pytest.raises(TimeoutError):
        simulator.simulate_one({})


@needs_scalesim
def test_scalesim_takes_the_published_number_of_cycles(tmp_path: Path) -> None:
    # Folds: ceil(K/8) x ceil(N/8), each T + 2R + C - 2 cycles; nothing stalls on a wide link.
    hardware = SYSTOLIC.replace(dram_bytes_per_cycle=64.0)
    layer = Layer("conv", "conv", K=12, C=4, R=3, S=3, P=6, Q=6)
    simulator = ScaleSimSimulator(network(layer), always(hardware))
    (found,) = scalesim_figures(simulator, hardware, [layer], tmp_path)
    m, n, k = layer.gemm
    folds = -(-k // 8) * -(-n // 8)
    assert found["stall_cycles"] == 0
    assert found["cycles"] == folds * (m + 2 * 8 + 8 - 2) - 1
    assert found["sram_filter_reads"] == n * k


@needs_scalesim
def test_scalesim_runs_every_kind_of_layer() -> None:
    simulator = ScaleSimSimulator(network(GEMM, DEPTHWISE), always(SYSTOLIC))
    alone = ScaleSimSimulator(network(GEMM), always(SYSTOLIC)).simulate_one({})
    both = simulator.simulate_one({})
    assert set(both) == set(simulator.metric_names)
    assert both["latency_cycles"] > 2 * DEPTHWISE.groups * 14 + alone["latency_cycles"]
    assert 0 < both["utilisation_rate"] < 1


def test_zigzag_gets_groups_where_a_depthwise_layer_has_no_channels() -> None:
    (mapping,) = zigzag_mapping(DEPTHWISE, NVDLA)
    assert mapping["spatial_mapping"] == {"D1": ["G, 8"], "D2": ["C, 8"]}
    (mapping,) = zigzag_mapping(CONV, NVDLA)
    assert mapping["spatial_mapping"] == {"D1": ["K, 8"], "D2": ["C, 8"]}
    workload = zigzag_workload(GROUPED, NVDLA)
    sizes = dict(zip(workload["loop_dims"], workload["loop_sizes"], strict=True))
    assert (sizes["G"], sizes["K"], sizes["C"], sizes["OY"]) == (2, 8, 4, 14)


def test_zigzag_gets_memories_from_the_inside_outwards() -> None:
    memories = zigzag_accelerator(NVDLA)["memories"]
    assert list(memories)[-2:] == ["buffer", "dram"]
    assert memories["weight_rf"]["size"] == 8 * NVDLA.weight_rf_bytes
    assert memories["buffer"]["operands"] == ["I1", "I2", "O"]
    bypassing = zigzag_accelerator(NVDLA.replace(weights_bypass_buffer=True))["memories"]
    assert bypassing["buffer"]["operands"] == ["I1", "O"]
    split = NVDLA.replace(buffer_bytes=6144, buffer_split_bytes=(1024, 2048, 3072))
    parts = zigzag_accelerator(split)["memories"]
    assert parts["weight_buffer"]["size"] == 8 * 2048


@needs_zigzag
def test_zigzag_finds_a_mapping_no_faster_than_the_array() -> None:
    simulator = ZigZagSimulator(network(CONV), always(NVDLA), lpf_limit=3)
    found = simulator.simulate_one({})
    assert set(found) == set(simulator.metric_names)
    assert found["latency_cycles"] >= CONV.macs / 64
    footprint = CONV.input_footprint + CONV.weight_footprint + CONV.output_footprint
    assert found["dram_bytes"] >= footprint
    assert found["energy_pj"] > 0


def test_zigzag_options_are_checked() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'latency'"):
        ZigZagSimulator(network(CONV), always(NVDLA), optimize="latenzy")
    with pytest.raises(InvalidValueError, match="lpf_limit=0"):
        ZigZagSimulator(network(CONV), always(NVDLA), lpf_limit=0)


# -- MAESTRO -------------------------------------------------------------------------------------

FAKE_MAESTRO = f"""
    import pathlib, sys
    here = pathlib.Path(__file__).parent
    (here / "seen.m").write_text(pathlib.Path("mapping.m").read_text())
    (here / "arguments").write_text("\\n".join(sys.argv[1:]))
    text = pathlib.Path({str(RECORDED / "maestro.csv")!r}).read_text()
    exec((here / "mode").read_text())
    pathlib.Path("mapping.csv").write_text(text)
"""


@pytest.fixture
def maestro(tmp_path: Path) -> Path:
    (tmp_path / "mode").write_text("")
    return script(tmp_path / "maestro", FAKE_MAESTRO)


def test_maestro_gives_what_it_prints(maestro: Path, tmp_path: Path) -> None:
    simulator = MaestroSimulator(network(CONV, GROUPED), always(NVDLA), program=maestro)
    found = simulator.simulate_one({})
    assert found["latency_cycles"] == 31752 * (1 + 2 * 2)
    assert found["area_um2"] == 3.81323e06
    assert found["power_mw"] == 108.966
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert {"--num_pes=64", "--noc_bw_cstr=16", f"--offchip_bw_cstr={2**30}"} <= set(arguments)
    assert (
        "Dimensions { K: 8, C: 4, R: 3, S: 3, Y: 16, X: 16 }" in (tmp_path / "seen.m").read_text()
    )


def test_maestro_that_fails_fails_the_design(maestro: Path, tmp_path: Path) -> None:
    simulator = MaestroSimulator(network(CONV), always(NVDLA), program=maestro)
    for mode, message in (
        ("print('(Error@ ) Dimension K not found'); sys.exit(0)", "Dimension K not found"),
        ("sys.exit(3)", "exit code 3"),
        ("text = 'Area\\n1'", "'Runtime \\(Cycles\\)'"),
        ("text = text.replace('31752', '0')", "0.0 for 'Runtime"),
        ("text = ''", "gave None"),
    ):
        (tmp_path / "mode").write_text(mode)
        with pytest.raises(SimulationError, match=message):
            simulator.simulate_one({})


def test_maestro_mapping_of_products_and_depthwise_layers() -> None:
    assert "Dimensions { K: 10, C: 32, R: 1, S: 1, Y: 4, X: 1 }" in maestro_mapping(GEMM, NVDLA)
    rows = EYERISS.replace(weights_bypass_buffer=False)
    text = maestro_mapping(DEPTHWISE, rows)
    assert "Type: DSCONV" in text
    assert "TemporalMap(2,2) K" not in text
    assert "Cluster(Sz(R),P)" in text


def test_maestro_table_is_read_by_column() -> None:
    found = read_maestro(RECORDED / "maestro.csv")
    assert found["Num MACs"] == CONV.macs == 225792
    assert found["L2 SRAM Size Req (Bytes)"] == 1312


def has_program(name: str, variable: str) -> bool:
    try:
        find_program(name, variable)
    except MissingDependencyError:
        return False
    return True


@pytest.mark.skipif(
    not has_program("maestro", MaestroSimulator.variable),
    reason="the program maestro is neither on PATH nor in ARCHGYM_MAESTRO",
)
def test_the_real_maestro_prints_what_was_recorded() -> None:
    found = MaestroSimulator(network(CONV), always(NVDLA)).simulate_one({})
    assert found["latency_cycles"] == 31752
    assert found["area_um2"] == 3.81323e06
    for dataflow in ("shidiannao_os", "eyeriss_rs", "xp_ws", "nlr_cp"):
        hardware = NVDLA.replace(dataflow=dataflow)
        ran = MaestroSimulator(network(CONV, GEMM), always(hardware)).simulate_one({})
        assert ran["latency_cycles"] >= CONV.macs / 64


def test_missing_programs_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for simulator in (MaestroSimulator, TimeloopSimulator):
        monkeypatch.delenv(simulator.variable, raising=False)
        monkeypatch.setenv("PATH", "")
        with pytest.raises(MissingDependencyError, match=f"Build .*{simulator.variable}"):
            simulator(network(CONV), always(NVDLA))


# -- Timeloop ------------------------------------------------------------------------------------

FAKE_TIMELOOP = f"""
    import pathlib, sys
    here = pathlib.Path(__file__).parent
    (here / "seen.yaml").write_text(pathlib.Path(sys.argv[1]).read_text())
    stats = pathlib.Path({str(RECORDED / "timeloop-mapper.stats.txt")!r}).read_text()
    exec((here / "mode").read_text())
    pathlib.Path("timeloop-mapper.stats.txt").write_text(stats)
"""


def test_timeloop_gives_what_it_prints(tmp_path: Path) -> None:
    (tmp_path / "mode").write_text("")
    program = script(tmp_path / "timeloop-mapper", FAKE_TIMELOOP)
    simulator = TimeloopSimulator(network(CONV, GROUPED), always(EYERISS), program=program)
    found = simulator.simulate_one({})
    assert found["latency_cycles"] == 18816 * (1 + 2 * 2)
    assert found["energy_pj"] == pytest.approx(2.51e6 * 5)
    assert found["dram_bytes"] == (1152 + 2048 + 3136) * 5
    for mode, message in (
        ("sys.exit(0)", "found no mapping"),
        ("stats = stats.replace('Cycles: ', 'Cicles: ')", "no cycles"),
        ("stats = stats.replace('DRAM', 'MRAM')", "no accesses"),
    ):
        (tmp_path / "mode").write_text(mode)
        with pytest.raises(SimulationError, match=message):
            simulator.simulate_one({})


def test_timeloop_reads_the_summary_and_not_a_level() -> None:
    found = read_timeloop((RECORDED / "timeloop-mapper.stats.txt").read_text())
    assert found["cycles"] == 18816
    assert found["utilization"] == 0.75


def test_timeloop_input_keeps_each_operand_where_row_stationary_does() -> None:
    data = timeloop_input(GROUPED, EYERISS, 100)
    storage = {level["name"]: level for level in data["arch"]["storage"]}
    assert storage["WeightRegFile"]["entries"] == EYERISS.weight_rf_bytes
    assert storage["WeightRegFile"]["instances"] == 168
    assert storage["DummyBuffer"]["instances"] == 14
    assert (data["problem"]["C"], data["problem"]["K"]) == (4, 8)
    kept = {
        c["target"]: c["keep"] for c in data["mapspace"]["constraints"] if c["type"] == "datatype"
    }
    assert kept["GlobalBuffer"] == ["Inputs", "Outputs"]
