from __future__ import annotations

import json
import math
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import archgym
from archgym.data import Dataset, load
from archgym.errors import DatasetError
from archgym.experiment import (
    RunOptions,
    expand,
    load_experiment,
    read_experiment,
    run_experiment,
    shipped_experiments,
)
from archgym.registry import make_agent
from tests.experiment.experiments import written

HEAVY = {"matplotlib", "numba", "pandas", "pyarrow", "ray", "scipy", "skopt", "sklearn", "torch"}


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = {
        "name": "two",
        "budget": 30,
        "seeds": 2,
        "environments": [
            {"id": "Conformance-v0", "objective": {"minimize": ["access_ns", "energy_pj"]}},
            {"id": "Conformance-v0", "space": "finite", "fixed": {"ways": 4}},
        ],
        "agents": [{"name": "random"}, {"name": "sa"}],
    }
    folder = tmp_path_factory.mktemp("cli") / "run"
    run_experiment(read_experiment(data), folder, RunOptions(local=True, quiet=True))
    return folder


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['archgym', '--help']\n"
        "from archgym.cli import main\n"
        "try: main()\n"
        "except SystemExit: print(sorted({m.split('.')[0] for m in sys.modules}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage" in done.stdout
    loaded = set(json.loads(done.stdout.splitlines()[-1].replace("'", '"')))
    assert not loaded & HEAVY


def test_there_are_no_stubs(call: Any) -> None:
    shown = call("--help").out
    for name in ("list", "show", "run", "evaluate", "best", "check", "schema", "dataset", "new"):
        assert name in shown
    for name in ("report", "proxy", "validate", "merge"):
        assert call(name).code == 2
        assert call("dataset", name).code == 2


def test_without_arguments_it_says_what_to_do_next(call: Any) -> None:
    shown = call().out
    for command in re.findall(r"`archgym ([^`]+)`", shown):
        words = command.split()
        assert call(*words[:-1], "--help").code == 0, command
    assert "archgym run quickstart" in shown


def test_a_missing_argument_is_explained(call: Any) -> None:
    done = call("show")
    assert done.code == 2
    assert "Missing argument" in done.err
    assert "archgym list" in done.err


def test_version(call: Any) -> None:
    assert call("--version").out == f"archgym {archgym.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lst"], "Did you mean 'list'?"),
        (["run", "quickstart", "--locl"], "--local"),
        (["list", "agent"], "unknown kind 'agent'. Did you mean 'agents'? Allowed: agents, envs"),
        (["report", "x", "--by", "agnt"], "unknown value of --by 'agnt'. Did you mean 'agent'?"),
        (["run", "quickstart", "--cpus", "0"], "'0' should be greater than or equal to 1"),
        (["run", "quickstart", "--cpus", "two"], "'two' should be a valid integer"),
        (["show", "Conformanse-v0"], "Did you mean 'Conformance-v0'?"),
        (["show", "sqlite3:Connection"], "neither a subclass of"),
        (["show", "locl"], "Did you mean 'local'?"),
        (["evaluate", "Conformance-v0", "wys=3"], "Did you mean 'ways'?"),
        (["evaluate", "Conformance-v0", "ways=33"], "allowed is an integer from 1 to 16"),
        (["evaluate", "Conformance-v0", "replacement=lur"], "Did you mean 'lru'?"),
        (["evaluate", "Conformance-v0", "ways"], "'ways' is not of the form key=value"),
        (["evaluate", "Conformance-v0", "ways=2", "ways=3"], "ways is given twice"),
        (
            ["evaluate", "Conformance-v0", "size_kb=60"],
            "The nearest is 64. Allowed: 1, 2, 4",
        ),
        (
            ["evaluate", "Conformance-v0", "--objective", "minimise energy_pj"],
            "unknown verb 'minimise'. Did you mean 'minimize'?",
        ),
        (["trace", "record", "--out", "trace.stl", "--", "true"], "must have the ending '.npz'"),
        (["evaluate", "Conformance-v0", "--set", "memory=1"], "unknown argument of Conformance-v0"),
        (["evaluate", "Conformance-v0", "--workload", "x"], "has no workloads"),
        (["evaluate", "Conformance-v0", "--space", "finit"], "Did you mean 'finite'?"),
        (["evaluate", "Conformance-v0", "--objective", "minimize x"], "unknown metric 'x'"),
        (
            ["evaluate", "Conformance-v0", "prefetch=true"],
            "lacks parameter 'distance', which acts when prefetch in (True): allowed is",
        ),
        (
            ["evaluate", "CPU-v0", "--space", "memory", "l1d_prefetcher=next_line"],
            "'l1d_prefetch_degree', which acts when l1d_prefetcher != none: allowed is 1, 2, 4, 8; "
            "and 'l1d_prefetch_distance'",
        ),
        (["evaluate", "DRAM-v0", "request_buffer_size=7"], "cannot be 7 (unit: requests)"),
        (["evaluate", "DRAM-v0", "--set", "memory=no.json"], "no DRAM device file 'no.json'"),
        (
            ["evaluate", "Conformance-v0", "--objective", "minimize energy_pj, area_mm2 <= 3"],
            "limits need a mapping",
        ),
        (["evaluate", "DRAM-v0", "--workload", "sqlit"], "Did you mean 'sqlite'?"),
        (["check", "Conformance-v1"], "Did you mean 'Conformance-v0'?"),
        (["best", "/nowhere"], "/nowhere is not there"),
        (["best", "/proc"], "holds neither a run nor a dataset"),
        (["dataset", "info", "/nowhere"], "/nowhere is not there"),
        (["new", "env", "my cache"], "NAME cannot be 'my cache'"),
        (["new", "env", "class"], "NAME cannot be 'class'"),
        (["run", "quickstrat"], "Did you mean 'quickstart'?"),
        (["run", "quickstart", "--local", "--cpus", "2"], "--cpus do not go with it"),
        (["trace", "record", "--cache", "l3=1", "--", "true"], "unknown cache setting 'l3'"),
    ],
)
def test_wrong_arguments_are_one_clear_message(
    call: Any, arguments: list[str], message: str
) -> None:
    called = call(*arguments)
    assert called.code == 2, called.out
    assert message in called.err
    assert "Traceback" not in called.err


def test_list(call: Any) -> None:
    found = call("list", "--json").json
    assert list(found) == ["envs", "agents", "simulators", "workloads", "experiments"]
    assert {"Conformance-v0", "DRAM-v0"} <= {row["name"] for row in found["envs"]}
    assert {"random", "ga", "aco", "sa", "bayesian"} <= {row["name"] for row in found["agents"]}
    assert {"sqlite", "zipf"} <= {row["name"] for row in found["workloads"]}
    assert all(row["description"] for rows in found.values() for row in rows)
    shown = call("list", "agents").out
    assert "ga" in shown
    assert "DRAM" not in shown
    assert "archgym[optuna]" in shown, "brackets are no markup"


def test_list_experiments_says_what_each_takes(call: Any) -> None:
    found = {row["name"]: row for row in call("list", "experiments", "--json").json["experiments"]}
    assert set(found) == set(shipped_experiments())
    quickstart = load_experiment("quickstart")
    assert found["quickstart"]["trials"] == str(len(expand(quickstart)))
    assert found["quickstart"]["simulations"] == f"{quickstart.budget} each"
    assert found["quickstart"]["description"] == quickstart.description


def test_show_an_environment(call: Any) -> None:
    data = call("show", "Conformance-v0", "--json").json
    assert data["spaces"]["finite"]["raw_cardinality"] == 5376
    assert data["spaces"]["finite"]["canonical_cardinality"] == 2484
    assert data["spaces"]["default"]["raw_cardinality"] is None  # infinite
    assert data["metrics"][0]["name"] == "access_ns"
    shown = call("show", "Conformance-v0").out
    for words in ("2,484", "infinitely many", "acts when", "way_holds_a_line", "Baseline"):
        assert words in shown


def test_show_an_environment_with_arguments(call: Any) -> None:
    data = call("show", "DRAM-v0", "--set", "objective=minimize power_mw", "--json").json
    assert data["default_objective"] == {"minimize": ["power_mw"]}
    data = call("show", "LLMTraining-v0", "--workload", "llama3_8b_h100_64", "--json").json
    ranges = {p["name"]: p["range"] for p in data["spaces"]["llama3_8b_h100_64"]["parameters"]}
    assert ranges["tensor_parallel"] == "1, 2, 4, 8, 16, 32"
    refused = call("show", "ga", "--workload", "dijkstra")
    assert refused.code == 2
    assert "agent 'ga' has no workload" in refused.err


def test_show_says_of_a_later_space_what_it_holds(call: Any) -> None:
    shown = call("show", "TPE-v0").out
    assert "given, not searched: array=cube columns=8" in shown
    assert shown.count("rule reduction_in_space") == 1
    assert call("show", "TPE-v0", "--json").json["spaces"]["cube"]["fixed"]["columns"] == 8


def test_show_says_what_is_not_modelled(call: Any) -> None:
    shown = call("show", "DRAM-v0").out
    assert "Not modelled" in shown
    assert "636,480" in shown
    assert "Argument memory: DDR3-1600, DDR4-2400" in " ".join(shown.split())


def test_show_an_agent(call: Any) -> None:
    data = call("show", "bayesian", "--json").json
    fields = {field["name"]: field for field in data["hyperparameters"]}
    assert fields["surrogate"]["allowed"] == "gp, forest, extra_trees"
    assert "`" not in data["description"]
    assert "population_size" in call("show", "ga").out


def test_evaluate(call: Any, tmp_path: Path) -> None:
    arguments = ["evaluate", "Conformance-v0", "ways=3", "--space", "finite"]
    data = call(*arguments, "--record", tmp_path / "d", "--json").json
    assert data["design"] == {"replacement": "lru", "size_kb": 8, "ways": 3, "prefetch": False}
    assert set(data["metrics"]) == set(data["baseline_metrics"])
    assert data["status"] == "ok"
    assert Dataset(tmp_path / "d").evaluations().num_rows == 1
    shown = call(*arguments, "--objective", "minimize: access_ns\nlimits: [area_mm2 <= 0.01]").out
    assert "access_ns" in shown
    assert "not feasible (limit area_mm2 <= 0.01 exceeded" in shown
    wrong = call("evaluate", "tests.cli.lazy:Noted", "x=1", "--set", f"file={tmp_path / 'ran'}")
    assert "the design lacks parameter 'y'" in wrong.err
    assert not (tmp_path / "ran").exists(), "the baseline was simulated before the mistake was told"
    illegal = call("evaluate", "Conformance-v0", "ways=16", "size_kb=1", "--json").json
    assert illegal["status"] == "illegal"
    assert "way_holds_a_line" in illegal["reason"]
    failing = call("evaluate", "tests.experiment.runner_helpers:Moody", "x=3")
    assert failing.code == 1
    assert "status failed" in failing.out
    assert "this design cannot be" in failing.out
    idle = call("evaluate", "Conformance-v0", "distance=3").out
    assert "distance does not act here: it does when prefetch" in idle


def test_evaluate_says_what_metrics_do_not_show(call: Any) -> None:
    lost = "a real memory loses its data"
    given = ("evaluate", "DRAM-v0", "--workload", "{generator: zipf, requests: 200}")
    excluded = call(*given, "refresh_policy=none")
    assert "'refresh_policy' cannot be 'none', which is excluded" in " ".join(excluded.err.split())
    study = (*given, "--set", "include=[refresh_policy]", "refresh_policy=none")
    assert lost in " ".join(call(*study).out.split())
    assert lost in call(*study, "--json").json["caveats"][0]
    assert lost not in call(*given).out
    assert lost in " ".join(call("show", "DRAM-v0").out.split())


def test_evaluate_says_at_which_clock(call: Any) -> None:
    given = ("evaluate", "TPE-v0", "--json")
    (fastest,) = call(*given).json["assumptions"]
    period = call(*given).json["metrics"]["min_period_ns"]
    assert fastest.startswith(f"clock {1e3 / period:.4g} MHz, the fastest of this design")
    (asked,) = call(*given, "clock=target", "clock_mhz=100").json["assumptions"]
    assert asked.startswith("clock 100 MHz, as the design asks")
    assert "assumed: clock 100 MHz" in call(*given[:2], "clock=target", "clock_mhz=100").out


def test_evaluate_keeps_what_is_fixed(call: Any) -> None:
    arguments = ("evaluate", "Conformance-v0", "--set", "fixed={ways: 4}", "--json")
    found = json.loads(call(*arguments).out)
    assert found["status"] == "ok"
    assert found["design"]["ways"] == 4
    assert json.loads(call(*arguments, "ways=2").out)["status"] == "illegal"


def test_best(call: Any, run_folder: Path) -> None:
    several, single = sorted(
        call("best", run_folder, "--json").json, key=lambda p: len(p["objective"]["minimize"])
    )[::-1]
    assert single["fixed"] == {"ways": 4}
    assert single["best"]["design"]["ways"] == 4
    assert single["trials"] == 4
    values = [tuple(point["objectives"].values()) for point in several["front"]]
    assert values == sorted(values)
    assert [v[1] for v in values] == sorted((v[1] for v in values), reverse=True)
    shown = call("best", run_folder).out
    assert "Pareto set" in shown
    assert "Best compromise" in shown
    assert "other than the baseline: " in shown
    assert "baseline 13.691 ns" in shown
    datasets = [call("best", path, "--json").json for path in (run_folder / "datasets").iterdir()]
    assert sorted(
        ([_without_commands(one) for one in found] for found in datasets), key=str
    ) == sorted(([_without_commands(one)] for one in (several, single)), key=str)


def test_best_names_held_parameters_that_are_off(call: Any, tmp_path: Path) -> None:
    held = {"ways": 4, "prefetch": False}
    with archgym.make("Conformance-v0", fixed=held, record=tmp_path / "data") as env:
        env.evaluate(env.baseline_design)
    assert "ways=4 prefetch=False" in call("best", tmp_path / "data").out


def test_designs_that_no_agent_searched_have_no_seed(call: Any, tmp_path: Path) -> None:
    with archgym.make("Conformance-v0", record=tmp_path / "data") as env:
        env.evaluate(env.baseline)
    title = call("best", tmp_path / "data").out.splitlines()[3]
    assert title == "Best design (external, simulation 1); evaluate it again with:"
    page = tmp_path / "page.html"
    assert call("report", tmp_path / "data", "--out", page).code == 0
    assert "seed -1" not in page.read_text()
    asked = call("report", tmp_path / "data", "--agents", " ,")
    assert (asked.code, asked.err.strip()[:24]) == (2, "Error: --agent is ' ,'; ")


def _without_commands(problem: dict[str, Any]) -> dict[str, Any]:
    found = [problem["best"], *problem.get("front", [])]
    return {**problem, "best": None, "front": [{**one, "command": ""} for one in found]}


@pytest.mark.parametrize("below", ["", "datasets/*"])
def test_best_says_how_each_design_is_evaluated_again(
    call: Any, run_folder: Path, below: str
) -> None:
    folders = sorted(run_folder.glob(below)) if below else [run_folder]
    found = [one for folder in folders for one in call("best", folder, "--json").json]
    assert len(found) == 2
    for problem in found:
        some = [problem["best"], *problem.get("front", [])[:2]]
        for held in some:
            program, *arguments = shlex.split(held["command"])
            assert program == "archgym"
            again = call(*arguments, "--json").json
            assert again["design"] == held["design"]
            assert again["metrics"] == held["metrics"]
            assert again["feasible"] == held["feasible"]
            assert again["objective"] == problem["objective"]
    shown = [call("best", folder).out.splitlines() for folder in folders]
    for problem in found:
        assert any(f"  {problem['best']['command']}" in lines for lines in shown)


@pytest.mark.parametrize("command", [["best"], ["report"], ["dataset", "info"]])
def test_a_missing_folder_names_those_that_may_be_meant(
    call: Any, run_folder: Path, command: list[str]
) -> None:
    meant = f"Did you mean '{run_folder}'?"
    assert f"is not there. {meant}" in call(*command, run_folder.with_name("rnu")).err
    above = call(*command, run_folder.parent).err
    assert f"holds neither a run nor a dataset itself. There are: {run_folder}." in above
    with pytest.raises(DatasetError, match="Did you mean"):
        archgym.data.load(run_folder.with_name("rnu"))


def test_dataset_info_and_export(call: Any, run_folder: Path, tmp_path: Path) -> None:
    found = call("dataset", "info", run_folder, "--json").json
    assert [data["evaluations"] for data in found] == [120, 120]
    assert "120" in call("dataset", "info", run_folder).out
    refused = call("dataset", "export", run_folder, tmp_path / "x.csv")
    assert refused.code == 2
    assert "several datasets" in refused.err
    one = found[0]["directory"]
    done = call("dataset", "export", one, tmp_path / "x.csv")
    assert done.code == 0, done.err
    assert len((tmp_path / "x.csv").read_text().splitlines()) == 121
    assert call("dataset", "export", one, tmp_path / "x.csv").code == 2
    assert call("dataset", "export", one, tmp_path / "y", "--format", "parquet").code == 0
    wrong = call("dataset", "export", one, tmp_path / "z.cvs")
    assert "Did you mean 'csv'?" in wrong.err


def test_check(call: Any) -> None:
    results = call("check", "Conformance-v0", "--json").json
    assert results
    assert all(result["passed"] for result in results)
    shown = call("check", "Conformance-v0")
    assert shown.code == 0
    required = sum(result["required"] for result in results)
    assert 0 < required < len(results)
    for n, kind in ((required, "required"), (len(results) - required, "polish")):
        assert f"{n} of {n} {kind} checks passed" in shown.out
    assert call("check", "tests.cli.lazy:Lazy").code == 1


@pytest.mark.parametrize(
    ("target", "names", "near"),
    [
        ("Conformance-v0", ["determinism", "gymnasium"], "determinsm"),
        ("random", ["seeds", "ask"], "seed"),
    ],
)
def test_check_only_some(call: Any, target: str, names: list[str], near: str) -> None:
    only = [word for name in names for word in ("--only", name)]
    found = {row["name"]: row["required"] for row in call("check", target, *only, "--json").json}
    assert found == {names[0]: True, names[1]: False}
    refused = call("check", target, "--only", near)
    assert refused.code == 2
    assert f"{near!r}. Did you mean {names[0]!r}? Allowed: " in refused.err


def test_check_only_says_too_that_it_cannot_be_made(call: Any) -> None:
    (row,) = json.loads(
        call("check", "Conformance-v0", "--set", "space=x", "--only", "steps", "--json").out
    )
    assert row["name"] == "can_be_made"
    assert not row["passed"]


@pytest.mark.full
def test_new_env_passes_its_own_checks(call: Any, tmp_path: Path) -> None:
    done = call("new", "env", "MyCache", "--out", tmp_path / "own")
    assert done.code == 0, done.err
    files = sorted(path.name for path in (tmp_path / "own").iterdir())
    assert files == ["my_cache.py", "test_my_cache.py"]
    lines = (tmp_path / "own" / "my_cache.py").read_text().splitlines()
    assert len(lines) <= 50
    for command in (
        ["-m", "archgym", "check", "my_cache:MyCache"],
        ["-m", "pytest", "-q", "-p", "no:cacheprovider"],
        ["-m", "ruff", "check", "--isolated", "."],
    ):
        ran = subprocess.run(
            [sys.executable, *command], cwd=tmp_path / "own", capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
    again = call("new", "env", "my_cache", "--out", tmp_path / "own")
    assert again.code == 2
    assert "exists already" in again.err


def test_schema(call: Any) -> None:
    schema = call("schema").json
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"name", "budget", "environments", "agents"}
    fields = [schema["properties"], *(model["properties"] for model in schema["$defs"].values())]
    undocumented = {
        name
        for properties in fields
        for name, field in properties.items()
        if not field.get("description")
    }
    assert undocumented <= {"environments", "agents", "resources", "simulation"}


def test_trace_record(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from archgym.envs.dram.traces import recording
    from archgym.envs.dram.traces.workload import load_workload

    asked: dict[str, Any] = {}

    def record(command: list[str], **settings: Any) -> Any:
        asked.update(settings, command=command)
        trace = load_workload({"generator": "stream", "requests": 100})
        return trace, {
            "requests": 100,
            "write_share": 0.0,
            "span_ns": 1000,
            "cache": {"line_bytes": 64},
        }

    monkeypatch.setattr(recording, "record", record)
    done = call(
        *("trace", "record", "--out", tmp_path / "ls.npz", "--clock-ghz", "3"),
        *("--cache", "llc_bytes=4194304", "--", "ls", "-l", "--all"),
    )
    assert done.code == 0, done.err
    assert "(6.4 GB/s)" in done.out
    assert asked["command"] == ["ls", "-l", "--all"]
    assert asked["clock_ghz"] == 3
    assert asked["cache"].llc_bytes == 4194304
    assert len(load_workload(str(tmp_path / "ls.npz"))) == 100


def test_help_is_wrapped_as_wide_as_the_terminal(call: Any) -> None:
    shown = call("trace", "record", "--help").out
    assert "give the program itself, not a wrapper" in " ".join(shown.split())
    lines = [line.strip() for line in shown.split("Usage:")[1].split("╭")[0].splitlines()]
    begins = "The program's output is discarded"
    at = next(i for i, line in enumerate(lines) if line.startswith(begins))
    assert len(lines[at]) + len(lines[at + 1].split()[0]) >= 77


def test_workloads_of_one_environment(call: Any) -> None:
    shown = call("list", "workloads", "CPU-v0", "--json")
    rows = json.loads(shown.out)["workloads"]
    assert {row["environment"] for row in rows} == {"CPU-v0"}
    assert all(row["description"] for row in rows)
    assert "Did you mean 'CPU-v0'" in call("list", "workloads", "CPU-v1").err
    assert "ENV goes with simulators and workloads" in call("list", "agents", "CPU-v0").err


def test_agents_are_named_alike_in_all_commands(call: Any, tmp_path: Path) -> None:
    env = archgym.make("Conformance-v0", record=tmp_path / "data")
    for name in ("random", "ga", "sa"):
        make_agent(name, env.design_space, seed=0).search(env, budget=10)
    env.close()
    for number, words in enumerate((["--agent", "ga,sa"], ["--agent", "ga", "--agents", "sa"])):
        file = tmp_path / f"{number}.csv"
        assert call("dataset", "export", tmp_path / "data", file, *words).code == 0
        rows = len(load(tmp_path / "data", agents=["ga", "sa"]))
        assert len(file.read_text().splitlines()) == 1 + rows
        page = call("report", tmp_path / "data", "--out", tmp_path / "r.html", *words)
        assert "2 trials on 1 problem" in page.err


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        # The most extreme of the orders of two groups of n, two-sided: 2 / (2n over n).
        (2, "with 2 seeds no difference between the agents can be significant (the least p is"),
        (4, "with 4 seeds a difference between the agents can be significant (the least p is"),
    ],
)
def test_a_run_says_what_its_seeds_can_show(
    seeds: int, said: str, call: Any, tmp_path: Path
) -> None:
    file = written(tmp_path, seeds=seeds)
    shown = " ".join(call("run", file, "--local", "--out", tmp_path / "run").out.split())
    assert f"{said} {2 / math.comb(2 * seeds, seeds):.2g})" in shown
    assert ("4 seeds could show one at 5 %" in shown) == (seeds == 2)


def test_a_run_says_that_seed_is_not_seeds(call: Any, tmp_path: Path) -> None:
    for seed in (0, 3):
        file = written(tmp_path, seed=seed, budget=2)
        shown = call("run", file, "--local", "--out", tmp_path / f"run{seed}").out
        assert ("seed: 3 changes nothing" in shown) == (seed == 3)
