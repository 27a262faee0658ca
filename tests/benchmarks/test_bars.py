from __future__ import annotations

import importlib.util
import shlex
from pathlib import Path

from archgym.registry import environment_names
from benchmarks.bars import BARS, Bar, bars, run, table

ROOT = BARS.parent.parent


def test_each_bar_has_a_command_that_exists() -> None:
    for bar in bars():
        program, first, *rest = shlex.split(bar.command)
        if program == "archgym":
            assert first == "validate"
            assert rest[0] in environment_names()
        elif first == "-m":
            assert importlib.util.find_spec(rest[0]), bar.command
        else:
            assert (ROOT / first).is_file(), bar.command
    names = [bar.file_name for bar in bars()]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) < 100


def test_every_environment_with_references_is_validated() -> None:
    validated = {bar.command.split()[2] for bar in bars() if bar.command.startswith("archgym")}
    others = {
        "Conformance-v0",
        "FPGA-v0",
        "GPUKernel-v0",
    }
    assert validated == set(environment_names()) - others


def test_the_results_show_what_was_found() -> None:
    assert table() in (ROOT / "RESULTS.md").read_text(encoding="utf-8")


def test_what_a_command_prints_is_kept_with_where_it_ran(tmp_path: Path) -> None:
    bar = Bar("sums", "2", "python -c 'print(1 + 1)'", 1.0, "2", "today")
    assert run(bar, tmp_path) == "ok"
    text = next(tmp_path.iterdir()).read_text()
    assert text.startswith("python -c")
    assert "commit " in text
    assert text.endswith("\n2\n")
    failing = Bar("fails", "", "python -c 'raise SystemExit(3)'", 1.0, "", "")
    assert run(failing, tmp_path) == "exit 3"
