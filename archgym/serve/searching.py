"""A session in which an agent of archgym proposes designs, and the program simulates them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from archgym.environment.environment import Environment
from archgym.errors import NotCoveredError, SimulationError
from archgym.evaluation.outcome import Outcomes
from archgym.problem.simulator import SimulationResult
from archgym.serve.client import ClientExecutor, Handed
from archgym.serve.designs import MAX_DESIGNS
from archgym.serve.lines import Channel, ClientGone
from archgym.serve.messages import Fields, RequestError, finite
from archgym.serve.session import Answer, Operation, Session

__all__ = ["SearchingSession"]

_STATUSES: Final[Mapping[str, Callable[[str], SimulationResult]]] = {
    "failed": SimulationError,
    "timeout": TimeoutError,
    "illegal": NotCoveredError,
}


class SearchingSession(Session):
    """Hands out the designs of a search, and takes their metrics.

    A thread answers requests; the search runs in the thread that calls :meth:`run`.

    Args:
        environment: with a simulator whose executor is the program.
        channel: to the program.
        about: what is fixed for the session, for ``describe``.
        executor: of the environment's simulator.
    """

    roles: ClassVar[Mapping[str, str]] = {
        "evaluate": "the program simulates, with ask and tell; archgym does without "
        "--simulator client",
    }

    def __init__(
        self,
        environment: Environment,
        channel: Channel,
        about: Mapping[str, Any],
        executor: ClientExecutor,
    ) -> None:
        super().__init__(environment, channel, about)
        self._executor = executor
        self._problem = ""  # why the search ended, if it could not go on
        self._thread = threading.Thread(target=self._talk, name="session", daemon=True)

    @property
    def operations(self) -> dict[str, Operation]:
        """With ``ask`` and ``tell``."""
        return {**super().operations, "ask": self._ask, "tell": self._tell}

    def run(self, search: Callable[[], None]) -> None:
        """Searches, and answers requests until there are no more.

        Args:
            search: returns when the search is over.

        Raises:
            Exception: what the search raises.
        """
        self._thread.start()
        try:
            search()
        except Exception as error:
            self._problem = str(error) or type(error).__name__
            self._executor.end()
            self._thread.join()  # until the program knows, and ends
            raise
        finally:
            self._executor.end()
        self._thread.join()

    def _talk(self) -> None:
        try:
            while not self.ended:
                line = self.channel.take(None)
                if line is None:
                    break
                self.handle(line)
        except ClientGone:
            pass
        finally:
            self._executor.end()

    def _evaluated(self, outcomes: Outcomes) -> None:
        super()._evaluated(outcomes)
        self._executor.recorded()

    def _ask(self, identity: Any, fields: Fields) -> Answer:
        n = fields.integer("n", 1, 1, MAX_DESIGNS)
        fields.done()
        found = self._executor.ask(n)
        self._check_going_on()
        over = self._executor.over and not found
        return {"designs": [self._handed_json(one) for one in found], "over": over}

    def _handed_json(self, one: Handed) -> dict[str, Any]:
        space = self.environment.design_space
        return {
            "ticket": one.ticket,
            "design": space.design(one.codes),
            "fidelity": one.fidelity,
            "baseline": one.ticket < 0,
        }

    def _tell(self, identity: Any, fields: Fields) -> Answer:
        if "results" in fields:
            found = fields.objects("results", MAX_DESIGNS)
            fields.done()
            several = [Fields(one, f"results[{i}]") for i, one in enumerate(found)]
        else:
            several = [fields]
        read = [self._result(one) for one in several]
        for position, (ticket, _, _) in enumerate(read):
            if ticket in [one for one, _, _ in read[:position]]:
                raise RequestError("invalid_value", f"ticket {ticket} is told twice")
        for told in read:
            self._executor.tell(*told)
            self._check_going_on()
        return {"told": len(read)}

    def _check_going_on(self) -> None:
        if self._problem:
            raise RequestError("search_failed", f"the search cannot go on: {self._problem}")

    def _result(self, fields: Fields) -> tuple[int, SimulationResult, float | None]:
        """A result as it was told, checked."""
        handed = self._executor.handed
        ticket = fields.get("ticket")
        if type(ticket) is not int or ticket not in handed:
            listed = sorted(handed)
            allowed = "the ticket of a design that was asked for and not told yet"
            raise RequestError(
                "invalid_value",
                f"{fields.place('ticket')} cannot be {str(ticket)[:40]}: allowed is {allowed}: "
                f"{', '.join(map(str, listed[:20])) or 'none is there'}",
                field=fields.place("ticket"),
                value=ticket,
                allowed=listed,
            )
        seconds = fields.number("seconds", None)
        status = fields.text("status", "ok")
        if status != "ok" and status not in _STATUSES:
            names = ["ok", *_STATUSES]
            raise RequestError.unknown("status", status, names, fields.place("status"))
        if status == "ok":
            result: SimulationResult = self._metrics(fields)
        else:
            result = _STATUSES[status](fields.text("reason", f"the program says {status}")[:1000])
        fields.done("metrics", "reason")
        return ticket, result, seconds

    def _metrics(self, fields: Fields) -> dict[str, float]:
        given, place = fields.get("metrics"), fields.place("metrics")
        if not isinstance(given, dict):
            raise RequestError.wrong(place, given, "an object: names of metrics and numbers")
        metrics = {metric.name: metric for metric in self.environment.metrics}
        for name, value in given.items():
            where = f"{place}.{name}"
            if name not in metrics:
                raise RequestError.unknown("metric", name, list(metrics), where)
            signed = metrics[name].signed
            if value is not None and (not finite(value) or (value < 0 and not signed)):
                least = "" if signed else " of at least 0"
                unit = f" in {metrics[name].unit}" if metrics[name].unit else ""
                raise RequestError.wrong(where, value, f"a finite number{least}{unit}, or null")
        for name in self.environment.simulator.metric_names:
            if given.get(name) is None:
                raise RequestError(
                    "invalid_value",
                    f"{place}.{name} is missing: give a number, or another status with a reason",
                    field=f"{place}.{name}",
                    value=None,
                    allowed="a finite number",
                )
        return {name: float(value) for name, value in given.items() if value is not None}
