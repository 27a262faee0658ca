"""A process that simulates designs: it receives and sends one message of JSON per design.

It ends when the other end of its connection is closed, also in the middle of a simulation, so a
run that was killed leaves no process behind. What a simulator prints is discarded.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from archgym.environment.environment import Environment
from archgym.errors import ArchgymError, NotCoveredError, SimulationError, StoppedEarly
from archgym.experiment.simulate.fingerprint import difference, fingerprint
from archgym.experiment.simulate.finished import keep_answer
from archgym.registry import make
from archgym.simulators.early_stopping import WatchedMetrics
from archgym.simulators.queued import simulate_one

__all__ = ["answer", "main", "make_ready"]


def answer(
    environment: Environment,
    codes: Sequence[int],
    fidelity: float,
    rule: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Simulates one design; gives the result as plain values.

    Args:
        environment: whose simulator is used.
        codes: canonical codes of the design.
        fidelity: at which it is simulated.
        rule: by which it may be stopped early.
    """
    simulator, space = environment.simulator, environment.design_space
    try:
        result, seconds = simulate_one(simulator, space, codes, fidelity, rule)
    except ArchgymError as error:  # concerns every design, such as a missing program
        return {"fatal": str(error), "seconds": 0.0}
    if isinstance(result, Mapping):
        so_far = {"so_far": result.so_far} if isinstance(result, WatchedMetrics) else {}
        metrics = {k: _plain(v) for k, v in result.items()}
        return {"metrics": metrics, **so_far, "seconds": float(seconds)}
    if isinstance(result, StoppedEarly):
        return {"stopped": result.record, "reason": str(result), "seconds": float(seconds)}
    kind = "failed"
    if isinstance(result, NotCoveredError):
        kind = "not_covered"
    elif isinstance(result, TimeoutError):
        kind = "timeout"
    return {"error": kind, "reason": str(result), "seconds": float(seconds)}


def make_ready(name: str, arguments: Mapping[str, Any]) -> Environment:
    """Makes an environment and compiles its simulator, so that no time limit includes that.

    Args:
        name: registered name, or ``module:Class``.
        arguments: of its constructor.
    """
    environment = make(name, **arguments)
    if getattr(environment.simulator, "compiles", False):
        environment.simulate_baseline()
    return environment


def main() -> None:
    """Runs until the connection ends, whose descriptor is the argument of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    link: Connection[Any, Any] = Connection(descriptor)
    questions: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(link, questions), daemon=True).start()
    job = questions.get()
    try:
        environment = make_ready(job["environment"], job["arguments"])
        differs = difference(fingerprint(environment.description), job.get("problem", {}))
        if differs:
            raise SimulationError(f"the environment is not the same: {differs}")
    except Exception as error:
        _say(link, {"refused": f"{type(error).__name__}: {error}"})
        return
    _say(link, {"ready": True})
    own = os.getpid()
    while True:
        question = questions.get()
        found = answer(environment, question["codes"], question["fidelity"], question["rule"])
        if os.getpid() != own:  # a simulator that forked returns twice: the copy has no listener
            os._exit(0)
        keep_answer(job["kept"], question["codes"], question["fidelity"], found)
        _say(link, found)


def _listen(link: Connection[Any, Any], questions: queue.Queue[dict[str, Any]]) -> None:
    with contextlib.suppress(EOFError, OSError):
        while True:
            questions.put(json.loads(link.recv_bytes()))
    os._exit(0)


def _say(link: Connection[Any, Any], what: Mapping[str, Any]) -> None:
    link.send_bytes(json.dumps(what, default=repr).encode())


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


if __name__ == "__main__":
    main()
