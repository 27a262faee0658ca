from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archgym.cli import main


class Called:
    """Exit code and output of a command."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Called]:
    """The command line, in this process."""
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: str | Path) -> Called:
        monkeypatch.setattr(sys, "argv", ["archgym", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        captured = capsys.readouterr()
        code = left.value.code
        return Called(code if isinstance(code, int) else 0, captured.out, captured.err)

    return run
