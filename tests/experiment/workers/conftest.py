from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.experiment.workers.queues import Run


@pytest.fixture
def run_of(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Makes the folder of a run; its workers end with the test."""
    runs: list[Run] = []

    def made(*environment: str, **arguments: Any) -> Run:
        runs.append(Run(tmp_path / "run", *environment, **arguments))
        return runs[-1]

    yield made
    for run in runs:
        run.stop()
