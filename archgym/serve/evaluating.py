"""A session in which the program proposes designs, and archgym simulates them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from archgym.errors import BudgetExhausted
from archgym.evaluation.outcome import Outcome
from archgym.serve.describe import outcome_json
from archgym.serve.messages import Fields, RequestError
from archgym.serve.session import Answer, Operation, Session
from archgym.space import Designs

__all__ = ["EvaluatingSession"]

_MAX_OPEN: Final = 10_000
"""Designs in flight above which no request is read."""
_PATIENCE_S: Final = 0.1
_SHORT_PATIENCE_S: Final = 0.005
"""How long outcomes are waited for before requests are looked at, s; the latter if a worker is
idle."""


@dataclass(eq=False)
class _Open:
    """A request whose designs are in flight.

    Attributes:
        identity: of the request.
        alone: whether it gave one design alone.
        asked: number of designs that it gave.
        tickets: of the designs that fitted into the budget.
        outcomes: those that are there, by ticket.
    """

    identity: Any
    alone: bool
    asked: int
    tickets: list[int]
    outcomes: dict[int, Outcome] = field(default_factory=dict)


class EvaluatingSession(Session):
    """Evaluates designs; with several workers, requests are answered as simulations end."""

    roles: ClassVar[Mapping[str, str]] = {
        "ask": "the program proposes designs, with evaluate; an agent of archgym proposes them in "
        "archgym serve ENV --simulator client --agent NAME",
        "tell": "archgym simulates, with evaluate; the program simulates in "
        "archgym serve ENV --simulator client --agent NAME",
    }

    @property
    def operations(self) -> dict[str, Operation]:
        """With ``evaluate``."""
        return {**super().operations, "evaluate": self._evaluate}

    def run(self) -> None:
        """Answers requests until there are no more, or the program asks for the end.

        Raises:
            ClientGone: if nobody reads the answers.
        """
        self._open: dict[int, _Open] = {}  # by ticket
        while not self.ended:
            line = self._next()
            if line is None:
                break
            self.handle(line)

    def _next(self) -> bytes | None:
        """The next request; meanwhile, and at the end, outcomes are collected and answered."""
        core = self.environment.evaluator
        while True:
            replaying = core.replaying and core.vacant > 0  # its log waits for more requests
            if not self._open or (replaying and not self.channel.over):
                return self.channel.take(None)
            if replaying:
                return None
            if len(self._open) < _MAX_OPEN:
                line = self.channel.take(0)
                if line is not None:
                    return line
                if self.channel.over and self.channel.gone:
                    return None
            idle = core.vacant > 0 and not self.channel.over
            self._collect(_SHORT_PATIENCE_S if idle else _PATIENCE_S)

    def _collect(self, timeout_s: float | None) -> None:
        for ticket, outcomes in self.environment.collect(timeout_s):
            request = self._open.pop(ticket)
            request.outcomes[ticket] = outcomes[0]
            if len(request.outcomes) == len(request.tickets):
                found = [request.outcomes[one] for one in request.tickets]
                self.answer(request.identity, self._outcomes(found, request.alone, request.asked))

    def _evaluate(self, identity: Any, fields: Fields) -> Answer | None:
        designs, alone = self.designs_of(fields)
        fidelity = fields.number("fidelity", 1.0)
        known = [one.value for one in self.environment.fidelities]
        if fidelity not in known:
            allowed = f"one of {', '.join(f'{one:.12g}' for one in known)}"
            raise RequestError.wrong("fidelity", fidelity, allowed)
        fields.done("design", "designs", "levels", "unit")
        try:
            if self.environment.evaluator.queued:
                self._submit(identity, designs, alone, fidelity)
                return None
            found = list(self.environment.evaluate_batch(designs, fidelity))
        except BudgetExhausted as error:
            raise RequestError("budget_exhausted", str(error), trial=self.trial_json()) from None
        return self._outcomes(found, alone, len(designs))

    def _end(self, identity: Any, fields: Fields) -> Answer:
        """As any session, after the designs in flight."""
        fields.done()
        while self._open and not self.environment.evaluator.replaying:
            self._collect(None)
        return super()._end(identity, fields)

    def _submit(self, identity: Any, designs: Designs, alone: bool, fidelity: float) -> None:
        tickets = self.environment.submit(designs, fidelity)
        request = _Open(identity, alone, len(designs), tickets)
        self._open |= dict.fromkeys(tickets, request)

    def _outcomes(self, found: list[Outcome], alone: bool, asked: int) -> Answer:
        """An answer; designs for which the budget had no room are counted as left out."""
        each = [outcome_json(one) for one in found]
        what: Answer = {"outcome": each[0]} if alone else {"outcomes": each}
        if asked > len(found):
            what["left_out"] = asked - len(found)
        return {**what, "trial": self.trial_json()}
