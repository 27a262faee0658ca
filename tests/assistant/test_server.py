"""The server, driven by the client of the official SDK over standard streams."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from archgym.data import Dataset, validate

pytest.importorskip("mcp", reason="the package mcp is not installed: pip install 'archgym[mcp]'")
anyio = pytest.importorskip("anyio")

ROOT = Path(__file__).parent.parent.parent
ENVIRONMENT = "Conformance-v0"
pytestmark = pytest.mark.full


@contextlib.asynccontextmanager
async def session(folder: Path, *options: str) -> AsyncIterator[Any]:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "archgym", "mcp", str(folder), *options],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    async with (
        stdio_client(parameters) as (read, write),
        ClientSession(read, write) as opened,
    ):
        await opened.initialize()
        yield opened


async def good(opened: Any, tool: str, **arguments: Any) -> Any:
    result = await opened.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def error(opened: Any, tool: str, **arguments: Any) -> str:
    result = await opened.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    text = str(result.content[0].text)
    assert "Traceback" not in text
    return text


def test_an_assistant_searches_dram(tmp_path: Path) -> None:
    progress: list[tuple[float, float | None]] = []

    async def told(done: float, total: float | None, message: str | None) -> None:
        progress.append((done, total))

    async def talk() -> None:
        async with session(tmp_path / "work", "--budget", "40") as opened:
            listed = (await opened.list_tools()).tools
            assert {"evaluate", "run_experiment", "best_designs"} <= {one.name for one in listed}
            for one in listed:
                assert one.description
                assert one.output_schema
            found = await good(opened, "list_environments")
            assert "DRAM-v0" in [one["name"] for one in found["environments"]]
            shown = await good(opened, "show_environment", environment="DRAM-v0")
            assert "stream" in shown["workloads"]
            problem = {
                "environment": "DRAM-v0",
                "workload": "stream",
                "objective": {"minimize": "read_latency_mean_ns", "limits": ["power_mw <= 2000"]},
                "fixed": {"refresh_policy": "all_bank"},
            }
            policies = [{}, {"page_policy": "closed"}, {"page_policy": "closd"}]
            assert "Did you mean 'closed'" in await error(
                opened, "evaluate", designs=policies, **problem
            )
            tried = await good(opened, "evaluate", designs=policies[:2], **problem)
            assert tried["outcomes"][0]["metrics"]["read_latency_mean_ns"]["unit"] == "ns"
            assert tried["budget"] == {"total": 40, "spent": 2, "left": 38}
            arguments = {"name": "search", "agents": ["auto"], "budget": 30, **problem}
            result = await opened.call_tool("run_experiment", arguments, progress_callback=told)
            assert not result.is_error, result.content
            assert result.structured_content["state"] == "finished"
            assert result.structured_content["budget"]["left"] == 8
            assert "8 of the budget" in await error(
                opened, "run_experiment", **{**arguments, "name": "more"}
            )
            best = (await good(opened, "best_designs", name="search"))["problems"][0]
            assert best["feasible"]
            latency = best["metrics"]["read_latency_mean_ns"]
            assert latency["value"] < latency["baseline"]
            report = await good(opened, "make_report", name="search")
            assert Path(report["path"]).is_file()

    anyio.run(talk)
    assert progress
    assert {total for _, total in progress} == {30}
    (dataset,) = (tmp_path / "work" / "evaluations").iterdir()
    assert Dataset(dataset).info()["agents"] == ["assistant"]
    assert not list((dataset / "journal").iterdir())  # sealed


def test_bad_arguments_and_huge_ones(tmp_path: Path) -> None:
    async def talk() -> None:
        async with session(tmp_path / "work", "--budget", "5") as opened:
            assert "Did you mean" in await error(
                opened, "evaluate", environment="Conformence-v0", designs=[{}]
            )
            await error(opened, "evaluate", environment=ENVIRONMENT)
            await error(opened, "evaluate", environment=ENVIRONMENT, designs=[])
            await error(opened, "evaluate", environment=ENVIRONMENT, designs=[{}] * 201)
            await error(opened, "evaluate", environment=ENVIRONMENT, designs="all")
            await error(opened, "evaluate", environment=["x"], designs=[{}])
            await error(opened, "evaluate", environment="x" * 1_000_000, designs=[{}])
            text = await error(
                opened, "evaluate", environment=ENVIRONMENT, designs=[{"ways": "x" * 1_000_000}]
            )
            assert len(text) < 10_000
            await error(opened, "best_designs", name="../../etc")
            await error(opened, "run_experiment", name="../x", environment=ENVIRONMENT, budget=1)
            await error(opened, "run_experiment", name="x", environment=ENVIRONMENT, budget=-1)
            await error(opened, "run_experiment", name="x", environment=ENVIRONMENT, budget=10**9)
            found = await good(opened, "evaluate", environment=ENVIRONMENT, designs=[{}])
            assert found["budget"]["spent"] == 1
            many = [{"ways": n} for n in range(1, 11)]
            cut = await good(opened, "evaluate", environment=ENVIRONMENT, designs=many)
            assert cut["not_evaluated"] > 0
            known = await good(opened, "evaluate", environment=ENVIRONMENT, designs=many)
            assert known["outcomes"][0]["known"]
            new = many[-cut["not_evaluated"] :]
            assert "is spent" in await error(
                opened, "evaluate", environment=ENVIRONMENT, designs=new
            )

    anyio.run(talk)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["work"]


def _raw(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "archgym", "mcp", str(folder), "--budget", "9999", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def _send(process: subprocess.Popen[bytes], *messages: dict[str, Any] | bytes) -> None:
    assert process.stdin is not None
    for message in messages:
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        process.stdin.write(data + b"\n")
    process.stdin.flush()


def _answer(process: subprocess.Popen[bytes], number: int) -> dict[str, Any]:
    assert process.stdout is not None
    while True:
        found: dict[str, Any] = json.loads(process.stdout.readline())
        if found.get("id") == number:
            return found


def _begun(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    process = _raw(folder, *options)
    about = {"protocolVersion": "2025-06-18", "capabilities": {}}
    about["clientInfo"] = {"name": "test", "version": "1"}
    _send(process, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about})
    _answer(process, 1)
    _send(process, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    return process


def _call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    parameters = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": parameters}


def test_lines_that_are_too_long_or_no_messages(tmp_path: Path) -> None:
    process = _begun(tmp_path / "work")
    _send(process, b"x" * (20 << 20), b"{}", b"[]", b"\xff", b"null")
    _send(process, _call(2, "list_results"))
    assert "structuredContent" in _answer(process, 2)["result"]
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors


def test_standard_input_that_is_closed_is_said(tmp_path: Path) -> None:
    command = f"exec {sys.executable} -m archgym mcp {tmp_path / 'work'} --budget 5 <&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, "standard input is closed" in done.stderr) == (2, True), done.stderr
    assert len(done.stderr.splitlines()) <= 2


def _slow_simulator(folder: Path) -> Path:
    """The file of a simulator that takes half a second."""
    slow = folder / "slow.yaml"
    slow.write_text(
        "parameters:\n  depth: {integer: [1, 1000], baseline: 4}\n"
        "stages:\n  run: {run: [sh, -c, 'sleep 0.5; echo $0', 'wait: {{ depth }}']}\n"
        "metrics:\n  wait_ns: {key: wait, unit: ns}\n"
    )
    return slow


@pytest.mark.parametrize(
    "how",
    [
        "the client dies",
        pytest.param(signal.SIGTERM, marks=pytest.mark.nightly),
        pytest.param(signal.SIGKILL, marks=pytest.mark.nightly),
    ],
)
def test_a_run_ends_with_the_server(tmp_path: Path, how: signal.Signals | str) -> None:
    slow = _slow_simulator(tmp_path)
    folder = tmp_path / "work"
    process = _begun(folder, "--environment", str(slow))
    _send(process, _call(2, "evaluate", environment="slow.yaml", designs=[{}]))
    assert not _answer(process, 2)["result"].get("isError")
    run = {"name": "long", "environment": "slow.yaml", "budget": 900, "agents": ["random"]}
    _send(process, _call(3, "run_experiment", **run))
    for _ in range(600):
        datasets = list(folder.glob("runs/long/datasets/*/dataset.json"))
        if datasets and Dataset(datasets[0].parent).info()["evaluations"]:
            break
        time.sleep(0.1)
    dataset = datasets[0].parent
    if isinstance(how, signal.Signals):
        process.send_signal(how)
    else:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()
    code = process.wait(60)
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()
    codes: dict[signal.Signals | str, int] = {signal.SIGTERM: 143, signal.SIGKILL: -9}
    assert code == codes.get(how, 0)
    time.sleep(2)
    before = Dataset(dataset).info()["evaluations"]
    time.sleep(2)
    assert Dataset(dataset).info()["evaluations"] == before > 0
    again = _begun(folder, "--environment", str(slow))
    _send(again, _call(2, "list_results"))
    state = _answer(again, 2)["result"]["structuredContent"]
    assert state["budget"]["spent"] == before + 1
    assert set(state["results"].values()) == {"run", "evaluations"}
    assert again.communicate(timeout=60)
    assert again.returncode == 0


def test_an_evaluation_ends_with_the_server_and_is_recorded(tmp_path: Path) -> None:
    slow = _slow_simulator(tmp_path)
    folder = tmp_path / "work"
    process = _begun(folder, "--environment", str(slow), "--budget", "900")
    designs = [{"depth": depth} for depth in range(1, 100)]
    _send(process, _call(2, "evaluate", environment="slow.yaml", designs=designs))
    for _ in range(300):
        if any(b"[0,2," in path.read_bytes() for path in folder.rglob("*.jsonl")):
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    assert process.stderr is not None
    assert not process.stderr.read()
    (dataset,) = folder.glob("evaluations/*/dataset.json")
    assert 3 <= Dataset(dataset.parent).info()["evaluations"] < 60
    assert all(check.passed for check in validate(Dataset(dataset.parent)))
    assert not list((dataset.parent / "journal").iterdir())


def test_a_misspelt_argument_is_refused(tmp_path: Path) -> None:
    async def talk() -> None:
        async with session(tmp_path / "work", "--budget", "5") as opened:
            given = {"environment": ENVIRONMENT, "designs": [{}], "objectiv": "minimize energy_pj"}
            assert "Did you mean 'objective'?" in await error(opened, "evaluate", **given)
            listed = await good(opened, "list_results")
            assert listed["budget"]["spent"] == 0

    anyio.run(talk)
