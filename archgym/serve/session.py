"""What both kinds of sessions have: a trial, its state, and requests that only look."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

import numpy as np

from archgym.environment.environment import Environment
from archgym.errors import ArchgymError
from archgym.evaluation.best import Best
from archgym.evaluation.outcome import Outcomes
from archgym.serve.describe import outcome_json, problem_json
from archgym.serve.designs import DesignReader
from archgym.serve.lines import Channel, ClientGone
from archgym.serve.messages import (
    PROTOCOL,
    Fields,
    RequestError,
    answer_line,
    error_line,
    read_request,
    request_id,
)
from archgym.space import Designs

__all__ = ["Answer", "Operation", "Session"]

MAX_SAMPLED: Final = 10_000
Answer = dict[str, Any]
Operation = Callable[[Any, Fields], Answer | None]
"""Answers a request, given its id and fields; ``None``: the answer comes later."""


class Session:
    """Answers requests about an environment, one after the other.

    Args:
        environment: with a trial begun, or about to begin.
        channel: to the program.
        about: what is fixed for the session, for ``describe``.

    Attributes:
        ended: whether the program asked for the end.
        baseline: metrics of the baseline design; ``None`` if they are not known yet.
        begun: whether anything was evaluated, or is about to be.
    """

    roles: ClassVar[Mapping[str, str]]
    """What else there is in another kind of session, and how to begin one, by operation."""

    def __init__(
        self, environment: Environment, channel: Channel, about: Mapping[str, Any]
    ) -> None:
        self.environment, self.channel, self.about = environment, channel, dict(about)
        self.reader = DesignReader(environment.design_space)
        self.ended = self.begun = False
        self.baseline: list[float] | None = None
        self._best = Best()
        environment.on_evaluated = self._evaluated

    @property
    def operations(self) -> dict[str, Operation]:
        """The operations by name; a subclass adds its own."""
        return {
            "describe": self._describe,
            "sample": self._sample,
            "neighbours": self._neighbours,
            "best": self._find_best,
            "status": self._status,
            "end": self._end,
        }

    def handle(self, line: bytes) -> None:
        """Answers a request, or begins to; whatever is wrong with it is its answer.

        Raises:
            ClientGone: if nobody reads the answer.
        """
        if not line.strip():
            return
        identity = None
        try:
            request = read_request(line)
            identity = request_id(request)
            answer = self._answered(identity, request)
        except ClientGone:
            raise
        except Exception as error:
            self.refuse(identity, error)
        else:
            if answer is not None:
                self.answer(identity, answer)

    def answer(self, identity: Any, fields: Mapping[str, Any]) -> None:
        """Sends an answer."""
        self.channel.send(answer_line(identity, fields))

    def refuse(self, identity: Any, error: Exception) -> None:
        """Sends an error; one that is nobody's fault is traced on stderr."""
        if not isinstance(error, RequestError | ArchgymError):
            traceback.print_exception(error, file=sys.stderr)
        self.channel.send(error_line(identity, error))

    def trial_json(self) -> dict[str, Any]:
        """What the trial has spent, and what is left."""
        if not self.begun:
            return {"spent": 0.0, "left": self.about.get("budget"), "exhausted": False}
        core = self.environment.evaluator
        left = None if core.budget is None else max(0.0, core.budget - core.spent)
        return {
            "spent": core.spent,
            "left": left,
            "simulations": core.simulations,
            "proposals": core.proposals,
            "duplicates": core.duplicates,
            "illegal": core.illegal,
            "exhausted": core.exhausted,
        }

    # -- operations ------------------------------------------------------------------------------

    def _answered(self, identity: Any, request: Mapping[str, Any]) -> Answer | None:
        fields, known = Fields(request), self.operations
        name = fields.text("op", "")
        if name in self.roles:
            raise RequestError("not_here", f"there is no {name!r} here: {self.roles[name]}")
        if name not in known:
            if "op" not in fields:
                allowed = ", ".join(known)
                raise RequestError(
                    "bad_request",
                    f"the request has no 'op', which is one of {allowed}",
                    field="op",
                    allowed=list(known),
                )
            raise RequestError.unknown("op", name, list(known), "op")
        return known[name](identity, fields)

    def _describe(self, identity: Any, fields: Fields) -> Answer:
        wanted = fields.get("protocol", PROTOCOL)
        if wanted != PROTOCOL:
            raise RequestError.wrong("protocol", wanted, f"{PROTOCOL}")
        fields.done()
        problem = {"protocol": PROTOCOL, **problem_json(self.environment, self.baseline)}
        problem |= self.about
        return {"problem": problem, "trial": self.trial_json()}

    def _sample(self, identity: Any, fields: Fields) -> Answer:
        n = fields.integer("n", 1, 1, MAX_SAMPLED)
        seed = fields.integer("seed", 0, 0, (1 << 63) - 1)
        fields.done()
        found = self.environment.design_space.sample(n, np.random.default_rng(seed))
        return {"designs": list(found)}

    def _neighbours(self, identity: Any, fields: Fields) -> Answer:
        designs, _ = self.reader.read(fields)
        fields.done()
        space = self.environment.design_space
        found = [space.neighbours(design) for design in designs]
        return {"designs": [design for some in found for design in some]}

    def _find_best(self, identity: Any, fields: Fields) -> Answer:
        fields.done()
        found, front = self._best.outcome, self._best.front
        return {
            "best": None if found is None else outcome_json(found),
            "front": [outcome_json(one) for one in front],
            "trial": self.trial_json(),
        }

    def _status(self, identity: Any, fields: Fields) -> Answer:
        fields.done()
        return {"trial": self.trial_json()}

    def _end(self, identity: Any, fields: Fields) -> Answer:
        answer = self._find_best(identity, fields)
        self.ended = True
        return answer

    def _evaluated(self, outcomes: Outcomes) -> None:
        self.begun = True
        self._best.update(outcomes)

    def designs_of(self, fields: Fields) -> tuple[Designs, bool]:
        """See :meth:`DesignReader.read`."""
        return self.reader.read(fields)
