"""What a worker process reads of its run is what the run wrote."""

from __future__ import annotations

import json
from pathlib import Path

from archgym.experiment import expand
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.run.context import RunContext
from archgym.experiment.spec.simulation import SimulationSettings
from tests.experiment.experiments import small


def test_round_trips_through_json_with_what_a_batch_needs(tmp_path: Path) -> None:
    spaces = [{"id": "Conformance-v0", "space": name} for name in ("finite", "default")]
    trials = expand(small(environments=spaces))
    context = RunContext(
        RunFolder(tmp_path / "run", "1-of-2"),
        "an id",
        SimulationSettings(workers=2, time_limit_s=1.5),
        {trial.setting: [1.0, 2.0] for trial in trials},
        {trial.setting: [{"ways": 1}] for trial in trials},
        frozenset(trial.trial_id for trial in trials),
        network=True,
    )
    back = RunContext.from_json(json.loads(json.dumps(context.to_json())))
    assert back.to_json() == context.to_json()
    assert back.folder.lock_file == context.folder.lock_file
    assert back.simulation == context.simulation
    part = back.of(trials[:1])
    assert part.baselines == {trials[0].setting: [1.0, 2.0]}
    assert part.initial == {trials[0].setting: [{"ways": 1}]}
    assert part.started == {trials[0].trial_id}
