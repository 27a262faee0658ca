"""The result of a run, as its tables and its picture need it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from archgym.analysis.trials import TrialSummary
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.results.files import Totals
from archgym.experiment.spec.expand import Trial


@dataclass(frozen=True)
class RunResult:
    """The result of an experiment.

    Attributes:
        folder: everything on disk.
        trials: all trials, in the order of the experiment.
        summaries: of the trials that evaluated something, by id.
        failures: why trials failed, by id.
        early: budget that trials had spent when they ended with at least one more simulation to
            spend, by id: the agent had nothing more to propose, or nothing new.
        totals: counts and times, over all trials that were ever run in the folder.
        wall_s: seconds that this run took.
    """

    folder: RunFolder
    trials: list[Trial]
    summaries: dict[str, TrialSummary]
    failures: dict[str, str]
    early: dict[str, float]
    totals: Totals
    wall_s: float = field(compare=False)

    def summaries_of(self, trials: Iterable[Trial]) -> list[TrialSummary]:
        """Summaries of those trials that evaluated something."""
        found = (self.summaries.get(trial.trial_id) for trial in trials)
        return [summary for summary in found if summary is not None]
