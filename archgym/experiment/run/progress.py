"""Progress of a run, and its display on a terminal or in a log."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from archgym.experiment.run.busy import Busy, busy_line, busy_rows, clock_text
from archgym.experiment.spec.expand import Trial
from archgym.problem.goals import goal_unit, natural
from archgym.problem.metrics import Metric
from archgym.problem.objective import Objective

__all__ = ["Counters", "Progress", "show_progress"]

_LINE_EVERY_S = 5.0
_RATE_OVER_S = 10.0
_SLOW_PER_S = 10.0  # below it the rate is shown by the hour
_ENOUGH = 10  # designs after which the remaining time is estimated
_MANY = 100  # trials above which a line shows the per cent
_MAX_SHOWN = 6  # settings whose best values a line shows


@dataclass(frozen=True)
class Counters:
    """What a trial has done so far.

    Attributes:
        simulations: distinct legal designs simulated.
        proposals: designs evaluated, duplicates and illegal ones included.
        best: best feasible value of each goal, minimised; empty if there is none yet.
        share: of the budget that is spent.
        busy: the workers that simulate; ``None`` if the trial's own process does.
    """

    simulations: int = 0
    proposals: int = 0
    best: tuple[float, ...] = ()
    share: float = 0.0
    busy: Busy | None = None


class Progress:
    """The progress of a run; the batches report it, the displays read it.

    Args:
        trials: all trials of the run.
        goals: objective and metrics of each setting.
        finished: ids of trials that were finished before this run began.
        before: best feasible value of each goal, minimised, that trials had found before this
            run, by id.
    """

    def __init__(
        self,
        trials: Sequence[Trial],
        goals: Mapping[str, tuple[Objective, Sequence[Metric]]],
        finished: Sequence[str] = (),
        before: Mapping[str, tuple[float, ...]] | None = None,
    ) -> None:
        self.total = len(trials)
        self.already = len(finished)
        self.goals = goals
        over = frozenset(finished)
        self._trials = {trial.trial_id: trial for trial in trials if trial.trial_id not in over}
        self._budget = sum(trial.weight for trial in self._trials.values())
        # Of trials that have ended only sums are kept: there may be very many.
        self._counters: dict[str, Counters] = {}
        self._states: dict[str, str] = {}
        self._ended: Counter[str] = Counter()
        self._evaluated, self._settled = 0, 0.0
        self._best: dict[str, tuple[tuple[float, ...], str]] = {}
        for trial in trials:
            self._take_best(trial, (before or {}).get(trial.trial_id, ()))
        self._began = self._searching_since = time.perf_counter()
        self._note = ""
        self._recent: deque[tuple[float, int]] = deque([(self._began, 0)])
        self._lock = threading.Lock()

    # -- reported by the batches ---------------------------------------------------------------

    def note(self, text: str) -> None:
        """Sets the text shown until the first trial begins."""
        with self._lock:
            self._note = text

    def started(self, trial_id: str) -> None:
        """A trial begins."""
        with self._lock:
            if not self._states:
                self._searching_since = time.perf_counter()
                self._recent = deque([(self._searching_since, 0)])
            self._states.setdefault(trial_id, "running")

    def counted(self, trial_id: str, counters: Counters) -> None:
        """A trial has evaluated more designs."""
        with self._lock:
            if self._states.get(trial_id, "running") == "running":
                self._counters[trial_id] = counters
            self._take_best(self._trials[trial_id], counters.best)

    def ended(self, trial_id: str, state: str) -> None:
        """A trial is ``finished`` or ``failed``."""
        with self._lock:
            if self._states.get(trial_id, "running") != "running":
                return  # reported again by the batch's next worker
            self._states[trial_id] = state
            self._ended[state] += 1
            self._evaluated += self._counters.pop(trial_id, Counters()).proposals
            self._settled += self._trials[trial_id].weight

    # -- read by the displays ------------------------------------------------------------------

    def line(self) -> str:
        """Everything in one line."""
        with self._lock:
            found = [setting for setting in self.goals if setting in self._best]
            parts = [self._trial_text()]
            if self._states and len(self._trials) >= _MANY:
                parts.append(f"{self._share():.0%}")
            parts.append(self._rate_text())
            if workers := busy_line(self._busy()):
                parts.append(workers)
            if 0 < len(found) <= _MAX_SHOWN:
                best = "; ".join(f"{setting}: {self._best_text(setting)}" for setting in found)
                parts.append(f"best {best}")
            return ", ".join(parts)

    def picture(self) -> RenderableType:
        """A bar, a line, and the best of each setting."""
        with self._lock:
            bar = ProgressBar(total=max(1, self._budget), completed=self._done(), width=40)
            head = Table.grid(padding=(0, 2))
            head.add_row(bar, Text(f"{self._share():.0%}"), Text(self._rate_text()))
            table = Table(box=None, padding=(0, 2, 0, 0), show_header=True, header_style="dim")
            for name in ("best so far", "", "agent"):
                table.add_column(name, no_wrap=True)
            for setting in self.goals:
                if setting in self._best:
                    table.add_row(setting, self._best_text(setting), self._best[setting][1])
                else:
                    table.add_row(setting, Text("nothing feasible yet", style="dim"), "")
            parts: list[RenderableType] = [head, Text(self._trial_text())]
            if workers := busy_line(self._busy()):
                parts.append(Text(workers))
                flights = Table.grid(padding=(0, 2, 0, 0))
                for worker, seconds in busy_rows(self._busy()):
                    flights.add_row(Text(f"  {worker}", style="dim"), Text(seconds, style="dim"))
                parts.append(flights)
            return Group(*parts, table)

    # -- inner workings ------------------------------------------------------------------------

    def _done(self) -> float:
        """Budget spent, with ended trials counted as if they had spent their budget."""
        return self._settled + sum(
            self._trials[trial_id].weight * min(1.0, counters.share)
            for trial_id, counters in self._counters.items()
        )

    def _busy(self) -> list[Busy]:
        return [one.busy for one in self._counters.values() if one.busy is not None]

    def _share(self) -> float:
        return self._done() / self._budget if self._budget else 1.0

    def _trial_text(self) -> str:
        done, failed = self._ended["finished"] + self.already, self._ended["failed"]
        running = f"{len(self._states) - self._ended.total()} running"
        parts = [
            f"{done} of {self.total} trials done",
            running if self._states or not self._note else self._note,
        ]
        return ", ".join(parts + ([f"{failed} failed"] if failed else []))

    def _rate_text(self) -> str:
        now = time.perf_counter()
        running = (counters.proposals for counters in self._counters.values())
        evaluated = self._evaluated + sum(running)
        self._recent.append((now, evaluated))
        while len(self._recent) > 2 and self._recent[1][0] < now - _RATE_OVER_S:
            self._recent.popleft()
        then, before = self._recent[0]
        rate = (evaluated - before) / max(now - then, 1e-6)
        elapsed, share = now - self._began, self._share()
        known = evaluated >= _ENOUGH and 0 < share < 1
        searching = now - self._searching_since  # without the start of Ray
        left = f", {clock_text(searching * (1 - share) / share)} left" if known else ""
        slow = rate < _SLOW_PER_S
        pace = f"{rate * 3600:,.0f} evaluations/h" if slow else f"{rate:,.0f} evaluations/s"
        return f"{pace}, {clock_text(elapsed)} elapsed{left}"

    def _take_best(self, trial: Trial, best: tuple[float, ...]) -> None:
        held = self._best.get(trial.setting)
        if best and (held is None or best[0] < held[0][0]):
            self._best[trial.setting] = (best, trial.agent_label)

    def _best_text(self, setting: str) -> str:
        objective, metrics = self.goals[setting]
        values, _ = self._best[setting]
        several = len(values) > 1
        return ", ".join(
            f"{goal.name + ' ' if several else ''}{natural(goal, metrics, value):.5g} "
            f"{goal_unit(goal, metrics)}".rstrip()
            for goal, value in zip(objective.goals, values, strict=True)
        )


@contextlib.contextmanager
def show_progress(progress: Progress, console: Console, quiet: bool = False) -> Iterator[None]:
    """Shows progress while the block runs: live on a terminal, else a line now and then."""
    if quiet:
        yield
    elif console.is_terminal:
        with Live(
            get_renderable=progress.picture, console=console, refresh_per_second=4, transient=True
        ):
            yield
    else:
        over = threading.Event()

        def report() -> None:
            while not over.wait(_LINE_EVERY_S):
                console.print(progress.line(), soft_wrap=True, highlight=False, markup=False)

        thread = threading.Thread(target=report, name="archgym-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
