"""Shows ``archgym status`` what a batch of trials does."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from archgym.experiment.folder.live_files import EVERY_S, InFlight, LiveFile
from archgym.experiment.run.context import RunContext
from archgym.experiment.run.environments import Environments

__all__ = ["shown_live"]


@contextlib.contextmanager
def shown_live(context: RunContext, batch: str, environments: Environments) -> Iterator[None]:
    """In the block, a file says about once a second what is in flight.

    A batch that takes less than a second leaves no file.

    Args:
        context: of the run.
        batch: name of the batch.
        environments: in which its trials run.
    """
    file, over = LiveFile(context.folder, f"{context.run_id[:8]}-{batch}"), threading.Event()

    def write() -> None:
        while not over.wait(EVERY_S):
            running = environments.running()
            flights = [InFlight(one.worker, one.started) for one in running]
            file.write(environments.trial_id, environments.slots, flights)

    thread = threading.Thread(target=write, name="archgym-live", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        file.remove()
