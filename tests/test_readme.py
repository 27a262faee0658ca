"""The README's code runs as it stands, and its environment is short."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()
BLOCKS = dict(re.findall(r"<!-- (\w+) -->\n```python\n(.*?)```", README, re.DOTALL))


@pytest.mark.parametrize("name", sorted(BLOCKS))
def test_code_block_runs(name: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(BLOCKS[name])
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_all_blocks_are_there() -> None:
    assert set(BLOCKS) == {"environment", "library", "agent", "dataset"}


def test_an_environment_takes_at_most_40_lines() -> None:
    lines = [line for line in BLOCKS["environment"].splitlines() if line.strip()]
    assert len(lines) <= 40


def test_each_command_is_one_line() -> None:
    for marker in ("run", "test"):
        found = re.search(rf"<!-- {marker} -->\n```bash\n(.*?)\n```", README, re.DOTALL)
        assert found is not None
        assert "\n" not in found[1]
        assert "-c constraints.txt" in found[1]


def test_linked_files_exist() -> None:
    root = Path(__file__).parent.parent
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert targets
    for target in targets:
        assert (root / target).exists(), target
