"""What holds for every test."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

# OpenMP threads of two test processes on two cores wait for each other actively, for minutes.
os.environ.setdefault("OMP_NUM_THREADS", "1")


# A shell that starts the tests in the background may have them ignore these signals, and programs
# that they start would too: those are to end by them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A nightly test is a long one too, so that ``-m full`` selects it."""
    for item in items:
        if item.get_closest_marker("nightly"):
            item.add_marker(pytest.mark.full)


@pytest.fixture(scope="session", autouse=True)
def _stable_baselines3_logs_with_the_tests(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """Keeps the log folders of plain Stable-Baselines3 code out of the common temporary folder.

    Its loggers make one for each call of ``learn``, even if nothing is to be logged.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SB3_LOGDIR", str(tmp_path_factory.mktemp("sb3")))
        yield
