"""Whatever is typed ends with an exit code and a message."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.trust.fuzzer import Fuzzer

CASES, PROCESSES = 5000, 2


@pytest.mark.parametrize("seed", range(3))
def test_commands_with_odd_arguments(seed: int, tmp_path: Path) -> None:
    assert [case for case in Fuzzer(seed, tmp_path).cases(25) if case.wrong] == []


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_thousands_of_commands_with_odd_arguments(tmp_path: Path) -> None:
    each, root = CASES // PROCESSES, Path(__file__).parents[2]
    running, shown = [], []
    for number in range(PROCESSES):
        shown.append(tmp_path / f"{number}.txt")
        with shown[-1].open("wb") as file:
            command = [sys.executable, "-m", "tests.trust.fuzzer", str(each), str(1000 + number)]
            running.append(subprocess.Popen(command, cwd=root, stdout=file, stderr=file))
    try:
        for process in running:
            process.wait()
    finally:
        for process in running:
            process.kill()
    texts = [path.read_text(errors="replace") for path in shown]
    assert all(text.endswith(f"\n0 wrong of {each}\n") for text in texts), "".join(texts)
