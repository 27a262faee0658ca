"""The other end of a session: what a program sends and gets."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from archgym.serve import Settings, serve

Json = dict[str, Any]

QUEUE = """
description: A queue that a program simulates.
parameters:
  depth: {integer: [1, 16], baseline: 4, unit: entries}
  width: {values: [1, 2, 4], baseline: 1}
  policy: {choices: [fifo, lifo], baseline: fifo}
  credits: {powers_of_two: [1, 8], baseline: 2, when: policy == fifo}
rules:
  small: depth * width <= 32
metrics:
  wait_ns: {unit: ns}
  area_um2: {unit: um2, optional: true}
"""


def wait_ns(design: Json) -> float:
    """What programs of these tests simulate; the least value is 10."""
    return float(100 / design["depth"] / design["width"] + design["depth"])


class Program:
    """A program at the other end of two descriptors."""

    def __init__(self, answers: int, requests: int) -> None:
        self._answers = os.fdopen(answers, "rb")
        self._requests = os.fdopen(requests, "wb")

    def send(self, *lines: Json | bytes) -> None:
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode()
            self._requests.write(data + b"\n")
        self._requests.flush()

    def receive(self) -> Json:
        line = self._answers.readline()
        assert line.endswith(b"\n"), line
        found: Json = json.loads(line)
        return found

    def call(self, line: Json | bytes | None = None, **fields: Any) -> Json:
        """Any answer."""
        self.send(fields if line is None else line)
        return self.receive()

    def good(self, op: str, **fields: Any) -> Json:
        """The answer to a request that is fulfilled."""
        answer = self.call(op=op, **fields)
        assert answer["ok"], answer
        return answer

    def error(self, line: Json | bytes | None = None, **fields: Any) -> Json:
        """The error of a request that is not."""
        answer = self.call(line, **fields)
        assert answer["ok"] is False, answer
        found: Json = answer["error"]
        return found

    def rest(self) -> list[Json]:
        """All answers after the end of the requests."""
        self.finish()
        return [json.loads(line) for line in self._answers]

    def finish(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()

    def leave(self) -> None:
        """As when the program is killed."""
        self._answers.close()
        self.finish()


Begin = Callable[..., Program]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Begins sessions in threads of this process; what they raise is raised at the end."""
    expected: list[str] = []
    sessions: list[tuple[threading.Thread, Program, list[int]]] = []
    raised: list[BaseException] = []

    def run(settings: Settings, requests: int, answers: int) -> None:
        try:
            serve(settings, requests, answers)
        except BaseException as error:
            raised.append(error)
        finally:
            os.close(answers)

    def start(environment: str = "Conformance-v0", fails: str = "", **settings: Any) -> Program:
        expected.extend([fails] if fails else [])
        their_requests, requests = os.pipe()
        answers, their_answers = os.pipe()
        job = (Settings(environment, **settings), their_requests, their_answers)
        thread = threading.Thread(target=run, args=job)
        thread.start()
        program = Program(answers, requests)
        sessions.append((thread, program, [their_requests]))
        return program

    yield start
    for thread, program, descriptors in sessions:
        program.leave()
        thread.join(60)
        assert not thread.is_alive()
        for descriptor in descriptors:
            os.close(descriptor)
    unexpected = [one for one in raised if not any(text in str(one) for text in expected)]
    if unexpected:
        raise unexpected[0]
    assert len(raised) == len(expected)


@pytest.fixture
def queue(tmp_path: Path) -> str:
    """A file that declares what a program simulates."""
    path = tmp_path / "queue.yaml"
    path.write_text(QUEUE)
    return str(path)
