"""A disk that is full at the worst moment: a trial's end would fit, its beginning does not."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.experiment.experiments import written
from tests.trust.received import COMMAND, called


def test_a_trial_that_could_not_begin_has_no_end(tmp_path: Path) -> None:
    file, run = written(tmp_path, budget=40), tmp_path / "run"
    words = [*COMMAND, "run", str(file), "--local", "-q", "--out", str(run)]
    limited = ["bash", "-c", 'ulimit -f 8; exec "$@"', "run", *words]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 2, done.stderr
    assert called(["dataset", "validate", run], tmp_path).code == 0
    assert called([*words[len(COMMAND) :], "--resume"], tmp_path).code == 0
