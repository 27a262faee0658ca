"""``archgym new env --command``: a file from one finished run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import archgym
from archgym.declared import DeclaredEnvironment
from archgym.declared.proposals.propose import proposals, proposed_declaration
from archgym.errors import InvalidValueError, SimulationError
from tests.cli.conftest import Called, call  # noqa: F401 - a fixture
from tests.declared.conftest import Write


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    folder = tmp_path / "finished"
    folder.mkdir()
    (folder / "stdout").write_text(
        "simulator 1.2\n"
        "total time = 12.5 us\nipc: 1.75\n==77== D1  misses:  1,234 (100 rd)\ndelta: -3 V\n"
    )
    (folder / "stats.json").write_text('{"l2": {"misses": 3, "ok": true}, "cores": [{"ms": 1.5}]}')
    (folder / "table.csv").write_text("case,power\nx,1.5\n")
    (folder / "more.csv").write_text("case;area mm2;note\nx;1;a\ny;2.5;b\n")
    (folder / "core").write_bytes(bytes(range(256)))
    return folder


def test_what_was_printed_comes_first(tmp_path: Path) -> None:
    text = "".join(f"word{number}: {number}\n" for number in range(1000))
    (tmp_path / "input.txt").write_text(text)
    (tmp_path / "stderr").write_text("data/perl.bin : 47.34%  (1.4 => 0.7)\n")
    found = proposals(tmp_path)
    assert found[0].name == "value_share"
    assert found[0].reading["read_unit"] == "%"
    assert "perl" not in found[0].reading["regex"]
    assert "801 numbers more" in proposed_declaration("x", found)


def test_every_number_has_a_reading(finished: Path, tmp_path: Path) -> None:
    found = {one.name: (one.reading, one.value) for one in proposals(finished)}
    assert found["total_time_us"] == ({"key": "total time"}, "12.5")
    assert found["ipc_count"] == ({"key": "ipc"}, "1.75")
    assert found["l2_misses_count"] == ({"from": "stats.json", "json": "l2.misses"}, "3")
    assert found["power_count"] == ({"from": "table.csv", "csv": "power"}, "1.5")
    assert found["area_mm2_count"] == (
        {"from": "more.csv", "csv": "area mm2", "separator": ";"},
        "2.5",
    )
    assert found["delta_v"][0]["signed"]
    (pattern,) = [
        one["regex"] for one, _ in found.values() if "regex" in one and "D1" in one["regex"]
    ]
    assert pattern == r"D1\s+misses:\s+([-+\d.,eE]+)"


def test_the_proposed_file_reads_the_same_numbers(finished: Path, tmp_path: Path) -> None:
    found = proposals(finished)
    text = proposed_declaration("mine", found)
    copies = "".join(
        f"\n  - {{path: {path.name}, copy: finished/{path.name}}}" for path in finished.iterdir()
    )
    text = text.replace("files: []", f"files:{copies}")
    text = text.replace('[your-program, "--knob={{ knob }}"]', "[cat, stdout]")
    (tmp_path / "mine.yaml").write_text(text)
    metrics = archgym.make(str(tmp_path / "mine.yaml")).evaluate({"knob": 4}).metrics
    assert metrics["total_time_us"] == 12.5
    assert metrics == {one.name: float(one.value.replace(",", "")) for one in found}


def test_the_command_writes_a_file(
    finished: Path,
    tmp_path: Path,
    call: Callable[..., Called],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("new", "env", "MySim", "--command", "finished").code == 0
    assert archgym.registry.environment_class("my_sim.yaml").baseline == {"knob": 4}
    assert "exists already" in call("new", "env", "MySim", "--command", "finished").err


def test_a_kept_folder_gives_what_its_stages_printed(
    write: Write,
    call: Callable[..., Called],  # noqa: F811
) -> None:
    before = "stages:\n  first:\n    run: [sh, -c, 'echo load 5; echo bad = 7 >&2; exit 0']\n"
    sources = "files:\n  - {path: code.txt, text: 'cores = 8'}\n"
    path = write(("files:\n", sources), ("stages:\n", before), (r"(\d+)", "(no)"))
    env = archgym.make(path, keep="failed")
    with pytest.raises(SimulationError, match="area_um2: nothing in stdout"):
        env.simulate_baseline()
    assert isinstance(env, DeclaredEnvironment)
    (folder,) = env.kept
    found = {one.name: one.reading for one in proposals(folder)}
    assert found == {
        "bad_count": {"stage": "first", "from": "stderr", "key": "bad"},
        "load_count": {"stage": "first", "regex": r"load\s+([-+\d.,eE]+)"},
        "wait_us": {"key": "wait"},
        "area_count": {"key": "area"},
        "credits_count": {"key": "credits"},
    }
    assert call("new", "env", "MySim", "--command", str(folder)).code == 0
    made = archgym.registry.environment_class("my_sim.yaml")
    assert {metric.name for metric in made.metrics} == set(found)


def test_what_a_program_printed_before_its_time_limit_is_kept(write: Write) -> None:
    hanging = "stages:\n  hang: {run: [sh, -c, 'echo at 7; exec sleep 60'], time_limit_s: 0.5}\n"
    env = archgym.make(write(("stages:\n", hanging)), keep="failed")
    with pytest.raises(SimulationError, match="did not finish within"):
        env.simulate_baseline()
    assert isinstance(env, DeclaredEnvironment)
    (folder,) = env.kept
    assert (folder / "hang.stdout").read_text() == "at 7\n"


def test_nothing_is_read_through_links(finished: Path) -> None:
    os.symlink("/etc/passwd", finished / "users")
    with pytest.raises(InvalidValueError, match="users"):
        proposals(finished)


def test_a_folder_without_numbers_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"no file in .* has a number"):
        proposals(tmp_path)
