"""Files of a received folder that are small to send and huge to read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trust.received import called, received_run

NAME = "datasets/Conformance-v0"
ZEROS = 1 << 40


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return received_run(tmp_path_factory.mktemp("sizes") / "run")


@pytest.mark.parametrize("name", [f"{NAME}/journal/x.jsonl", "log/x.jsonl"])
def test_a_file_of_zeros_is_no_line(name: str, sent: Path, tmp_path: Path) -> None:
    """A sparse file takes no room, and a line of it would fill the memory."""
    path = sent / name
    path.touch()
    try:
        with path.open("r+b") as file:
            try:
                file.truncate(ZEROS)
            except OSError:
                pytest.skip("the file system has no files of this size")
        ended = called(["dataset", "validate", "."], sent, limit_s=60)
    finally:
        path.unlink()
    assert ended.code in (1, 2)
    assert "x.jsonl" in ended.out + ended.err
    assert "Traceback" not in ended.err
