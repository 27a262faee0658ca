"""The README is short and its code runs as it stands; the guides have the shortest programs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from archgym.cli import app
from archgym.cli.docs.commands_page import commands_page

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"<!-- (\w+) -->\n```python\n(.*?)```", README, re.DOTALL))
SHORTEST = {
    "environment": "environments",
    "library": "libraries",
    "agent": "agents",
    "dataset": "datasets",
}
"""The shortest program of each use, and its guide; tests/docs/test_guides.py runs them."""


def _shortest(name: str) -> str:
    """A program of a guide that has the mark ``python: NAME``."""
    text = (ROOT / "docs" / "guides" / f"{SHORTEST[name]}.md").read_text("utf-8")
    found = re.search(rf"<!-- python: {name} -->\n```python\n(.*?)```", text, re.DOTALL)
    assert found is not None, name
    return found[1]


def test_readme_is_one_screen() -> None:
    lines = README.splitlines()
    assert len(lines) <= 150, "shorten README.md, or say it in a guide"
    assert lines.index("```python") < 44


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
    assert set(BLOCKS) == {"search"}
    assert len(BLOCKS["search"].split("\n\n", 1)[1].splitlines()) <= 8


@pytest.mark.parametrize("name", SHORTEST)
def test_guides_have_the_shortest_programs(name: str) -> None:
    assert "import archgym" in _shortest(name)


def test_an_environment_takes_at_most_40_lines() -> None:
    lines = [line for line in _shortest("environment").splitlines() if line.strip()]
    assert len(lines) <= 40


def test_each_command_is_one_line() -> None:
    for marker in ("run", "test"):
        found = re.search(rf"<!-- {marker} -->\n```bash\n(.*?)\n```", README, re.DOTALL)
        assert found is not None
        assert "\n" not in found[1]
        assert "-c constraints.txt" in found[1]


def _commands() -> list[tuple[str, str]]:
    """Where each archgym command of the documents stands, and the command."""
    found = []
    for path in [ROOT / "README.md", ROOT / "RESULTS.md", *sorted(ROOT.glob("docs/guides/*.md"))]:
        for block in re.findall(r"```bash\n(.*?)```", path.read_text("utf-8"), re.DOTALL):
            lines = [line.strip() for line in block.splitlines()]
            found += [(path.name, line) for line in lines if line.startswith("archgym ")]
    return found


def test_commands_of_the_documents_have_the_options_that_they_use() -> None:
    page = commands_page(get_command(app))
    reference = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page, re.M | re.S))
    commands = _commands()
    assert len(commands) > 50
    for where, line in commands:
        words = shlex.split(line, comments=True)
        name = next(" ".join(words[:n]) for n in (3, 2) if " ".join(words[:n]) in reference)
        own = words[: words.index("--")] if "--" in words else words
        for option in (word.partition("=")[0] for word in own if word.startswith("--")):
            assert re.search(rf"`(-\w / )?{option}[ `]", reference[name]), f"{where}: {line}"


@pytest.mark.parametrize("name", ["README.md", "RESULTS.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_linked_files_exist(name: str) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", (ROOT / name).read_text("utf-8"))
    assert targets
    for target in targets:
        assert (ROOT / target).exists(), target
