"""Whatever is typed ends with an exit code and a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trust.fuzzer import Fuzzer


@pytest.mark.parametrize("seed", range(3))
def test_commands_with_odd_arguments(seed: int, tmp_path: Path) -> None:
    assert [case for case in Fuzzer(seed, tmp_path).cases(25) if case.wrong] == []


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_thousands_of_commands_with_odd_arguments(tmp_path: Path) -> None:
    assert [case for case in Fuzzer(1000, tmp_path).cases(5000) if case.wrong] == []
