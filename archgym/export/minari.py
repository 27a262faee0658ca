"""Trials as Minari datasets for offline reinforcement learning."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import pyarrow as pa
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from archgym.data.designs import design_columns, read_designs
from archgym.data.files import new_folder
from archgym.data.problems import Problem, baseline_of, identifier, problems_of
from archgym.data.selection import Selection
from archgym.data.snapshot import counts_of
from archgym.environment.arguments import search_arguments
from archgym.environment.observation import Observer, observation_space
from archgym.errors import (
    ArchgymError,
    InvalidValueError,
    MissingDependencyError,
    check_choice,
    check_integer,
)
from archgym.registry import environment_class, environment_names
from archgym.space.action import action_encoding

if TYPE_CHECKING:
    from minari.data_collector.episode_buffer import EpisodeBuffer

EPISODES = ("recorded", "trial")
_NAME = "archgym"


def export_minari(
    selection: Selection,
    path: Path,
    *,
    episodes: str | int = "recorded",
    action: str = "auto",
    levels: int | None = None,
    name: str = _NAME,
) -> int:
    """Writes a Minari dataset for each problem (environment, workload, objective).

    ``minari.load_dataset("NAME/PROBLEM-v0")`` finds them with the environment variable
    ``MINARI_DATASETS_PATH`` set to the folder. Observations, rewards and terminations are those
    that the environment gave, actions those of ``action`` that stand for the design (an agent with
    another view of the space gave other numbers for it). The metadata of each episode name its
    trial, agent and first step.

    Offline learners want one kind of action each: those for discrete actions ``discrete``, such as
    d3rlpy's ``DiscreteCQL``, those for continuous ones ``box``, such as ``CQL`` and ``TD3PlusBC``.

    Args:
        selection: the rows.
        path: the folder.
        episodes: ``recorded``: as the environment ended them, by default after each design;
            ``trial``: one episode a trial, which ends (is terminated) with its last design; or a
            number: as an environment with that ``episode_length`` would have ended them.
        action: as the argument of environments: ``multi_discrete``, ``box``, ``discrete`` (one
            number a design), or ``auto``.
        levels: number of values at which real parameters are seen in discrete actions; an action
            then stands for the nearest of them.
        name: of the group of datasets.

    Returns:
        Number of steps written.

    Raises:
        MissingDependencyError: if Minari is not installed.
        UnknownNameError: for another kind of episodes or of actions.
        InvalidValueError: if an episode lacks steps, as in a dataset from which rows were left
            out; or if the design space has no such actions.
    """
    if isinstance(episodes, str) and episodes.isdecimal():
        episodes = int(episodes)
    if isinstance(episodes, str):
        check_choice("kind of episodes", episodes, (*EPISODES, "a number of designs"))
    else:
        episodes = check_integer("episodes", episodes, 1)
    try:
        import minari  # noqa: F401
    except ImportError:
        raise MissingDependencyError(
            "this export needs Minari: pip install 'archgym[minari]'"
        ) from None
    selection = selection.where("fidelity == 1")  # an agent's steps are all in full
    written = 0
    with new_folder(path.absolute()) as root:  # pyarrow, under it, knows no relative ones
        for problem in problems_of(selection):
            dataset_id = f"{identifier(name)}/{identifier(problem.name)}-v0"
            form = _Form(episodes, action, levels)
            written += _Writer(selection, problem, form).write(root, dataset_id)
    return written


@dataclass(frozen=True)
class _Form:
    """What :func:`export_minari` is asked for."""

    episodes: str | int
    action: str
    levels: int | None

    def length(self, recorded: int | None) -> float:
        """Designs in an episode of a trial with a recorded length of episodes."""
        if isinstance(self.episodes, int):
            return self.episodes
        return math.inf if self.episodes == "trial" else recorded or 1


class _Writer:
    """Writes the dataset of one problem."""

    def __init__(self, selection: Selection, problem: Problem, form: _Form) -> None:
        sidecar = selection.dataset.sidecar
        self._selection = selection.of_trials(problem.trial_ids)
        self._problem, self._form = problem, form
        self._space = sidecar.space.fix(problem.fixed)
        self._metrics = sidecar.metrics
        self._trials = {row["trial_id"]: row for row in problem.trials}
        self._actions = action_encoding(self._space, form.action, form.levels)
        self._notes: list[dict[str, Any]] = []  # metadata of each episode
        self._observed = observation_space(self._space, self._metrics)

    def write(self, root: Path, dataset_id: str) -> int:
        """Number of steps written."""
        import minari
        from minari.dataset.minari_storage import MinariStorage

        folder = root / dataset_id
        folder.mkdir(parents=True)
        storage = MinariStorage.new(
            folder / "data",
            observation_space=self._observed,
            action_space=self._actions.space,  # type: ignore[attr-defined]
            env_spec=_spec(self._problem, self._selection, self._form),
            data_format="arrow",
        )
        storage.update_metadata(
            {
                "dataset_id": dataset_id,
                "minari_version": minari.__version__,
                "algorithm_name": ", ".join(self._problem.agents),
                "author": {_NAME},
                "description": f"{self._problem.name}: {self._problem.first['objective']}",
            }
        )
        storage.get_size = lambda: 0.0  # not the sizes of all files after every episode
        storage.update_episodes(self._episodes())
        storage.update_episode_metadata(self._notes)
        del storage.get_size
        storage.update_metadata({"dataset_size": float(storage.get_size())})
        return int(storage.total_steps)

    def _episodes(self) -> Iterator[EpisodeBuffer]:
        """Episodes as soon as they are whole."""
        counts: Counter[str] = Counter()  # rows of each trial that are still to come
        for table in self._selection.blocks(["trial_id"]):
            counts += counts_of(table["trial_id"])
        held: dict[str, list[pa.Table]] = {}  # of each trial what is in no episode yet
        columns = ["trial_id", "step", *design_columns(self._space), "reward"]
        columns += [f"metric.{metric.name}" for metric in self._metrics]
        for table in self._selection.blocks(columns):
            ids = table["trial_id"].combine_chunks()
            names, codes = ids.dictionary.to_pylist(), ids.indices.to_numpy()
            for code in dict.fromkeys(codes.tolist()):
                name = names[code]
                part = held.setdefault(name, [])
                part.append(table.take(np.flatnonzero(codes == code)))
                counts[name] -= part[-1].num_rows
                # Designs in an episode.
                length = self._form.length(self._trials[name]["episode_length"])
                if counts[name] == 0 or sum(map(len, part)) >= length:
                    yield from self._cut(name, part, length, last=counts[name] == 0)

    def _cut(
        self, name: str, part: list[pa.Table], length: float, *, last: bool
    ) -> Iterator[EpisodeBuffer]:
        from minari.data_collector.episode_buffer import EpisodeBuffer

        table = pa.concat_tables(part).sort_by("step")
        whole = int(table.num_rows if last else table.num_rows // length * length)
        trial, start = self._trials[name], 0
        first, seen, actions, rewards = self._arrays(trial, table.slice(0, whole))
        steps = table["step"].to_numpy()[:whole]
        while start < whole:
            stop = int(min(start + length, whole))
            self._check_steps(name, steps[start:stop], length)
            # Whether the environment, or the search, reported the end.
            whole_trial = length == math.inf
            ended = trial["state"] == "finished" if whole_trial else stop - start == length
            last_step = np.arange(start, stop) == stop - 1
            note = {"trial_id": name, "agent": trial["agent"], "agent_seed": trial["seed"]}
            self._notes.append({**note, "first_step": int(steps[start])})
            yield EpisodeBuffer(
                observations=np.concatenate([first[None], seen[start:stop]]),
                actions=np.asarray(actions[start:stop]),
                rewards=rewards[start:stop],
                terminations=last_step & ended,
                truncations=last_step & (not ended),
            )
            start = stop
        part[:] = [table.slice(whole)]

    def _arrays(self, trial: dict[str, Any], table: pa.Table) -> tuple[Any, ...]:
        """The first observation, then each row's observation, action and reward."""
        base = baseline_of(trial, self._metrics).tolist()
        columns = [table[f"metric.{m.name}"].to_numpy() for m in self._metrics]
        designs = read_designs(self._space, table)
        values = np.column_stack(columns).astype(np.float64)
        observer = Observer(self._space, self._metrics, base)
        seen = observer.many(designs, values)
        rewards = table["reward"].to_numpy()
        actions = self._actions.encode(designs)
        shape = self._actions.space.shape  # type: ignore[attr-defined]
        return self._first(trial, observer, base), seen, actions.reshape(-1, *shape), rewards

    def _first(
        self, trial: dict[str, Any], observer: Observer, base: list[float]
    ) -> NDArray[np.float32]:
        """What an environment shows at the start: the baseline design."""
        if trial["baseline_design"] is None:
            raise InvalidValueError(
                f"trial {trial['trial_id']} was recorded by an older version, which did not note "
                "the baseline design that agents see first: record it again"
            )
        design = self._space.designs([json.loads(trial["baseline_design"])])
        return np.asarray(observer.many(design, np.array([base]))[0])

    def _check_steps(self, name: str, steps: NDArray[np.int64], length: float) -> None:
        if length == 1:
            return
        begins = int(steps[0]) % int(length) if length < math.inf else int(steps[0])
        if begins or len(steps) != steps[-1] - steps[0] + 1:
            raise InvalidValueError(
                f"trial {name} lacks steps of an episode, rows were left out: export whole trials"
            )


def _spec(problem: Problem, selection: Selection, form: _Form) -> EnvSpec | None:
    """How to make the environment again; ``None`` if that is not known."""
    name, trial = problem.first["environment"], problem.first
    if name not in environment_names():
        return None
    try:
        cls = environment_class(name)
        spaces = cls.spaces()
    except ArchgymError:
        return None
    wanted = selection.dataset.sidecar.space.to_json()["parameters"]
    named = [key for key, space in spaces.items() if space.to_json()["parameters"] == wanted]
    spec = trial["workload_spec"]
    if not named or spec is None or selection.dataset.sidecar.simulator["name"] != "embedded":
        return None
    settings = json.loads(trial["settings"])
    taken = inspect.signature(cls.__init__).parameters
    kwargs = {key: value for key, value in settings.items() if key in taken}
    kwargs |= {"objective": json.loads(trial["objective"]), "space": named[0]}
    kwargs |= {"workload": json.loads(spec)} if json.loads(spec) is not None else {}
    kwargs |= search_arguments(selection.dataset.sidecar.space, problem.fixed, spaces[named[0]])
    kwargs |= {"action": form.action} if form.action != "auto" else {}
    kwargs |= {"levels": form.levels} if form.levels is not None else {}
    length = form.length(trial["episode_length"])
    kwargs |= {"episode_length": int(length)} if 1 < length < math.inf else {}
    known = gymnasium.spec(f"archgym/{name}")
    return dataclasses.replace(known, kwargs={**known.kwargs, **kwargs})
