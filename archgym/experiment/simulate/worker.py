"""A process that simulates designs: it reads one line of JSON and writes one, per design.

It ends when its standard input ends, also in the middle of a simulation, so a run that was killed
leaves no process behind. What a simulator prints is discarded.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from archgym.environment.environment import Environment
from archgym.errors import ArchgymError, NotCoveredError
from archgym.problem.simulator import MultiFidelitySimulator, SimulationResult, Simulator
from archgym.registry import make
from archgym.space import Designs

__all__ = ["answer", "main", "make_ready", "simulate_at"]


def answer(environment: Environment, codes: Sequence[int], fidelity: float) -> dict[str, Any]:
    """Simulates one design; gives the result as plain values.

    Args:
        environment: whose simulator is used.
        codes: canonical codes of the design.
        fidelity: at which it is simulated.
    """
    designs = Designs(environment.design_space, np.array([codes], dtype=np.int64))
    try:
        ((result, seconds),) = simulate_at(environment.simulator, designs, fidelity)
    except ArchgymError as error:  # concerns every design, such as a missing program
        return {"fatal": str(error), "seconds": 0.0}
    if isinstance(result, Mapping):
        return {"metrics": {k: _plain(v) for k, v in result.items()}, "seconds": float(seconds)}
    kind = "failed"
    if isinstance(result, NotCoveredError):
        kind = "not_covered"
    elif isinstance(result, TimeoutError):
        kind = "timeout"
    return {"error": kind, "reason": str(result), "seconds": float(seconds)}


def simulate_at(
    simulator: Simulator, designs: Designs, fidelity: float
) -> Sequence[tuple[SimulationResult, float]]:
    """Simulates designs fully, or at a lower fidelity; gives results with their seconds."""
    if fidelity == 1:
        return simulator.simulate(designs)
    assert isinstance(simulator, MultiFidelitySimulator)
    return simulator.simulate_at(designs, fidelity)


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
    """Runs until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    questions: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(questions,), daemon=True).start()
    job = questions.get()
    try:
        environment = make_ready(job["environment"], job["arguments"])
    except Exception as error:
        _say(out, {"refused": f"{type(error).__name__}: {error}"})
        return
    _say(out, {"ready": True})
    while True:
        question = questions.get()
        _say(out, answer(environment, question["codes"], question["fidelity"]))


def _listen(questions: queue.Queue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        questions.put(json.loads(line))
    os._exit(0)


def _say(out: int, what: Mapping[str, Any]) -> None:
    os.write(out, (json.dumps(what, default=repr) + "\n").encode())


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


if __name__ == "__main__":
    main()
