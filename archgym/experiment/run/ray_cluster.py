"""Starts or joins Ray, and checks that its nodes can run a given experiment."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
import uuid
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import ray
from ray._private import ray_constants
from ray._private.utils import get_num_cpus
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import archgym
from archgym.errors import ExperimentError
from archgym.experiment.folder.run_folder import RunFolder
from archgym.experiment.spec.schema import Resources
from archgym.experiment.spec.simulation import SimulationSettings

__all__ = [
    "check_address",
    "check_cpus",
    "check_cpus_here",
    "check_nodes",
    "check_offer",
    "connected",
    "cpus_here",
    "node_cpus",
]

_CONNECT_S = 10.0
_OBJECT_STORE_BYTES = 100 * 1024 * 1024  # trials exchange next to nothing


@contextlib.contextmanager
def connected(address: str, cpus: int | None) -> Iterator[None]:
    """Starts Ray, or joins a cluster, for as long as the block runs; Ray prints nothing.

    Args:
        address: of a Ray cluster to join; empty to start Ray on this machine, where nobody else
            reaches it.
        cpus: CPUs that Ray may use on this machine; ``None`` for all.

    Raises:
        ExperimentError: if that is not possible.
    """
    here: dict[str, Any] = {"num_cpus": cpus, "object_store_memory": _OBJECT_STORE_BYTES}
    warnings.filterwarnings("ignore", module="ray")
    logging.getLogger("ray").setLevel(logging.ERROR)
    # With a full disk, Tune shows a traceback each time it cannot store its state, which is not
    # needed here: workers that cannot record say so in one line.
    logging.getLogger("ray.tune.execution.experiment_state").setLevel(logging.CRITICAL)
    ends = signal.getsignal(signal.SIGTERM)
    try:
        with _outside_the_working_folder(), contextlib.ExitStack() as stack:
            if not address:
                stack.enter_context(_only_this_machine())
            ray.init(
                address=address or "local",
                include_dashboard=False if not address else None,
                log_to_driver=False,
                logging_level=logging.ERROR,
                configure_logging=True,
                **({} if address else here),
            )
    except (ConnectionError, RuntimeError, ValueError, OSError, TimeoutError) as error:
        what = f"join the Ray cluster at {address!r}" if address else "start Ray"
        reason = str(error).strip().partition("\n")[0]
        raise ExperimentError(f"cannot {what}: {reason} (--local runs without Ray)") from error
    if callable(ends) and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, ends)  # Ray's would print a stack and abort
    try:
        yield
    finally:
        ray.shutdown()


@contextlib.contextmanager
def _outside_the_working_folder() -> Iterator[None]:
    """Ray's workers look for modules in the folder in which Ray is started, before all others.

    That must not be the user's folder, which may have been received with a ``pyarrow.py`` in it.
    What a worker runs for archgym begins in the user's folder all the same.
    """
    here = os.getcwd()
    os.chdir(os.sep)
    try:
        yield
    finally:
        os.chdir(here)


@contextlib.contextmanager
def _only_this_machine() -> Iterator[None]:
    """Ray started meanwhile listens on the loopback address, not on those that others reach.

    Ray has an option for that, which it looks at once when it is imported, and in the processes
    that it starts.
    """
    name, before = ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR, ray_constants.ENABLE_RAY_CLUSTER
    given = os.environ.get(name)
    os.environ[name], ray_constants.ENABLE_RAY_CLUSTER = "0", False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before
        os.environ.pop(name)
        if given is not None:
            os.environ[name] = given


def check_address(address: str) -> None:
    """Refuses an address that nothing answers at; Ray itself would try for minutes."""
    if address.startswith("ray://"):
        raise ExperimentError(
            f"--address {address} is Ray Client, through which progress cannot be followed: start "
            "archgym on a node of the cluster, with --address auto"
        )
    host, _, port = address.rpartition(":")
    if not address or address == "auto":
        return
    if not host or not port.isdigit():
        raise ExperimentError(f"--address cannot be {address!r}: allowed is auto or HOST:PORT")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise ExperimentError(f"cannot join the Ray cluster at {address!r}: {error}") from error


def cpus_here() -> int:
    """CPUs that Ray takes on this machine unless told otherwise: of a container, its share."""
    return int(get_num_cpus())


def check_cpus(
    resources: Resources, simulation: SimulationSettings, sizes: Sequence[float]
) -> None:
    """Refuses trials that need more CPUs than there are.

    Args:
        resources: what a trial may use.
        simulation: says how many workers simulate for a trial, with how many CPUs each.
        sizes: number of CPUs of each node.

    Raises:
        ExperimentError: if a trial does not fit.
    """
    largest = max(sizes, default=0.0)
    executors, cpus = simulation.processes, simulation.cpus
    left = int((sum(sizes) - resources.cpus_per_trial) / cpus) if cpus else executors
    if executors > max(0, left):
        allowed = f"at most {left} fit" if left > 0 else "none fit"
        raise ExperimentError(
            f"simulation.workers cannot be {executors}: Ray offers {sum(sizes):g} CPUs, of which a "
            f"trial itself takes resources.cpus_per_trial, {resources.cpus_per_trial:g}; beside it "
            f"{allowed}: set simulation.cpus below {cpus:g}, leave workers out, or run without Ray "
            "by --local"
        )
    if resources.cpus_per_trial > largest:
        raise ExperimentError(
            f"resources.cpus_per_trial cannot be {resources.cpus_per_trial:g}: the largest node "
            f"that Ray has offers {largest:g} CPUs"
        )


def check_cpus_here(
    resources: Resources, simulation: SimulationSettings, cpus: float | None
) -> None:
    """As :func:`check_cpus`, for this machine alone, without waiting for Ray.

    Args:
        resources: what a trial may use.
        simulation: says how many workers simulate for a trial, with how many CPUs each.
        cpus: CPUs that Ray may use; ``None`` for all.

    Raises:
        ExperimentError: if a trial does not fit.
    """
    check_cpus(resources, simulation, [float(cpus_here() if cpus is None else cpus)])


def check_offer(simulation: SimulationSettings) -> None:
    """Refuses workers that need more GPUs, memory or named resources than the cluster offers.

    Raises:
        ExperimentError: for the first of these.
    """
    offered: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    for name, each in simulation.bundle.items():
        if name != "CPU" and each * simulation.processes > offered.get(name, 0.0):
            there = f"{offered[name]:g} in all" if offered.get(name) else "none"
            raise ExperimentError(
                f"simulation.workers cannot be {simulation.processes}: each needs {each:g} of "
                f"{name!r}, of which Ray offers {there}"
            )


def check_nodes(folder: RunFolder) -> None:
    """Refuses a cluster if a node does not see the output folder, or has another archgym."""
    token = uuid.uuid4().hex
    path = folder.ray / "token"
    folder.write(path, token)
    look = ray.remote(num_cpus=0)(_look)
    for node in _nodes():
        affinity = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        where = f"node {node['NodeManagerAddress']} of the Ray cluster"
        try:
            text, version = ray.get(look.options(scheduling_strategy=affinity).remote(str(path)))
        except ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[-1]
            raise ExperimentError(f"{where} cannot run archgym: {reason}") from error
        if text != token:
            raise ExperimentError(
                f"{where} does not see the output folder {folder.path}: choose one on a file "
                "system that all nodes share, with --out"
            )
        if version != archgym.__version__:
            raise ExperimentError(
                f"{where} has archgym {version}, this machine has {archgym.__version__}"
            )


def node_cpus() -> list[float]:
    """Number of CPUs of each node of the cluster."""
    return [node["Resources"].get("CPU", 0.0) for node in _nodes()]


def _nodes() -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]


def _look(path: str) -> tuple[str, str]:
    """Reads a file on a node; gives its text, and the node's version of archgym."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(), archgym.__version__
    except OSError:
        return "", archgym.__version__
