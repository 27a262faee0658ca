"""Accuracies from training on the spot: each network in a separate process, results cached on disk.

A cached result is the learning curve of one architecture and one seed, up to the last epoch
trained. Its key is the digest of the data, the recipe, the architecture's key, the seed, the device
and PyTorch's version: a network that was trained before on a machine is not trained again, even if
its description differs. Earlier epochs are points on the same curve.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.envs.nas.accuracy.training_loop import RECIPES, Recipe, train
from archgym.envs.nas.data import Dataset, checked_folders, load
from archgym.envs.nas.families import Architecture, Task
from archgym.envs.nas.tasks import TASKS, family_of
from archgym.errors import InvalidValueError, SimulationError
from archgym.simulators.external import private_folder, run_program

__all__ = ["TrainedAccuracy", "default_cache", "train_one"]

_MODULE = "archgym.envs.nas.accuracy.train_on_demand"


class TrainedAccuracy:
    """Trains the requested networks, with :func:`archgym.envs.nas.accuracy.training_loop.train`.

    A network that takes too long or whose training fails has the accuracy NaN and a line in
    :attr:`failures`; it is not remembered on disk.

    Args:
        cache: folder in which curves are remembered; by default :func:`default_cache`.
        data: folder of each data set that does not ship, by the data set's name (``cifar10``,
            ``stl10``, ``nuclei``).
        seeds: of weights and order of images; the accuracy is the mean over them.
        device: a PyTorch device; ``cpu`` gives the same numbers again on one machine.
        time_limit_s: for one seed of one network, s.
        processes: how many train at a time, each with one thread.

    Raises:
        InvalidValueError, UnknownNameError: for an argument that is not possible.

    >>> from archgym.envs.nas.tasks import TASKS
    >>> TrainedAccuracy(seeds=[0]).accuracies(TASKS["digits"], [], 1)
    array([], dtype=float64)
    """

    name = "train"
    synthetic = False
    epochs: tuple[int, ...] = Recipe().epochs

    def __init__(
        self,
        cache: str | Path | None = None,
        data: Mapping[str, str | Path] | None = None,
        seeds: Sequence[int] = (0,),
        device: str = "cpu",
        time_limit_s: float = 3600.0,
        processes: int = 1,
    ) -> None:
        self._cache = default_cache() if cache is None else Path(cache)
        self._folders = checked_folders(data)
        self._seeds = tuple(seeds)
        whole = all(isinstance(seed, int) and seed >= 0 for seed in self._seeds)
        if not whole or not self._seeds or len(set(self._seeds)) < len(self._seeds):
            raise InvalidValueError(
                f"seeds is {seeds!r}; they must be different whole numbers, at least 0"
            )
        if not time_limit_s > 0 or time_limit_s == float("inf"):
            raise InvalidValueError(
                f"time_limit_s is {time_limit_s!r}; it must be above 0 and finite"
            )
        if processes < 1:
            raise InvalidValueError(f"processes is {processes!r}; it must be at least 1")
        self._device = device
        self._time_limit_s = time_limit_s
        self._processes = processes
        self.failures: dict[tuple[str, str, int], str] = {}
        """Why there is no accuracy, by task, architecture's key and seed."""

    def accuracies(
        self, task: Task, architectures: Sequence[Architecture], epochs: int
    ) -> NDArray[np.float64]:
        """Mean accuracies over the seeds, percent, NaN where training failed.

        Raises:
            InvalidValueError: if the task has no data or its folder is missing or bad, or the
                epochs are not those of the task's recipe.
        """
        recipe = _recipe(task)
        if epochs not in recipe.epochs:
            raise InvalidValueError(f"epochs is {epochs!r}; those of {task.name} {recipe.epochs}")
        folder = self._folder(task)
        digest = _loaded(task, folder).digest
        family = family_of(task)
        keys = [family.key(task, each) for each in architectures]
        wanted = {
            (key, seed): architecture
            for key, architecture in zip(keys, architectures, strict=True)
            for seed in self._seeds
        }

        def accuracy(job: tuple[tuple[str, int], Architecture]) -> float:
            (key, seed), architecture = job
            return self._accuracy(task, key, architecture, seed, epochs, digest)

        with ThreadPoolExecutor(self._processes) as pool:
            found = dict(zip(wanted, pool.map(accuracy, wanted.items()), strict=True))
        return np.array([np.mean([found[key, seed] for seed in self._seeds]) for key in keys])

    def _accuracy(
        self,
        task: Task,
        key: str,
        architecture: Architecture,
        seed: int,
        epochs: int,
        digest: str,
    ) -> float:
        recipe = asdict(_recipe(task))
        identity = {
            "task": task.name,
            "networks": family_of(task).version,
            "architecture": key,
            "seed": seed,
            "data": digest,
            "recipe": {**recipe, "epochs": list(recipe["epochs"])},
            "device": self._device,
            "torch": version("torch"),
        }
        name = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]
        path = self._cache / task.name / f"{name}.json"
        curve = _read_curve(path, identity)
        column: int = recipe["epochs"].index(epochs)
        if len(curve) <= column:
            try:
                curve = self._trained(task, architecture, seed, epochs)
            except (SimulationError, TimeoutError) as error:
                self.failures[task.name, key, seed] = str(error)
                warnings.warn(f"{task.name} {key}, seed {seed}: {error}", stacklevel=2)
                return float("nan")
            _write_curve(path, {**identity, "percent": curve})
        return curve[column]

    def _trained(
        self, task: Task, architecture: Architecture, seed: int, epochs: int
    ) -> list[float]:
        folder = self._folder(task)
        job = {
            "task": task.name,
            "architecture": dict(architecture),
            "seed": seed,
            "epochs": epochs,
            "device": self._device,
            "folder": None if folder is None else str(folder.absolute()),
        }
        # The process runs in another folder and finds this archgym all the same.
        paths = [str(Path(path).absolute()) for path in sys.path]
        with private_folder() as place:
            try:
                output = run_program(
                    [
                        sys.executable,
                        "-m",
                        "archgym.envs.nas.accuracy.train_on_demand",
                        json.dumps(job),
                    ],
                    place,
                    time_limit_s=self._time_limit_s,
                    environment={"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)},
                )
            except TimeoutError as error:
                raise TimeoutError(
                    f"{error}, its time_limit_s; accuracy_options may give more"
                ) from None
        curve: list[float] = json.loads(output.stdout)
        return curve

    def _folder(self, task: Task) -> Path | None:
        return self._folders.get(task.data) if task.data else None


def default_cache() -> Path:
    """Folder of cached curves: ``archgym/nas`` in the user's cache folder.

    That is ``XDG_CACHE_HOME`` if it is set, else ``.cache`` in the home folder.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "archgym" / "nas"


def train_one(job: Mapping[str, Any]) -> list[float]:
    """Runs in each process: the curve of one network and seed, percent after each evaluated epoch.

    Args:
        job: ``task``, ``architecture``, ``seed``, ``epochs``, ``device`` and the data's ``folder``.
    """
    from archgym.envs.nas.accuracy.training_loop import one_thread

    one_thread(job["device"])
    task = TASKS[job["task"]]
    folder = None if job["folder"] is None else Path(job["folder"])
    curves = train(
        task,
        job["architecture"],
        _loaded(task, folder),
        seeds=[job["seed"]],
        epochs=job["epochs"],
        device=job["device"],
    )
    curve: list[float] = curves[0].tolist()
    return curve


def _recipe(task: Task) -> Recipe:
    return RECIPES.get(task.name, Recipe())


def _loaded(task: Task, folder: Path | None) -> Dataset:
    if task.data is None:
        raise InvalidValueError(f"task {task.name!r} has no data: there is nothing to train on")
    return load(task.data, folder)


def _read_curve(path: Path, identity: Mapping[str, Any]) -> list[float]:
    """The cached curve in a file; empty if there is none, or the file holds something else."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        curve = [float(value) for value in stored.pop("percent")]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    return curve if stored == identity else []


def _write_curve(path: Path, entry: Mapping[str, Any]) -> None:
    """Writes a new file and renames it: a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, suffix=".part", delete=False, encoding="utf-8"
    ) as file:
        json.dump(entry, file)
    Path(file.name).replace(path)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(train_one(json.loads(sys.argv[1]))))
