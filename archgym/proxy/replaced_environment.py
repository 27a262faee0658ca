"""The environment of a proxy, with the real simulator."""

from __future__ import annotations

from typing import Any

from archgym.environment.environment import Environment
from archgym.proxy.provenance import Origin
from archgym.validation.recorded import make_recorded


def make_original(origin: Origin, workload: int = 0, **arguments: Any) -> Environment:
    """The environment on one of the workloads, with its real simulator.

    Args:
        origin: of a proxy.
        workload: index into its workloads.
        **arguments: of the environment, in place of those recorded, and ``read_files``, see
            :func:`archgym.validation.recorded.make_recorded`.

    Raises:
        DatasetError: see :func:`archgym.validation.recorded.make_recorded`.
    """
    one = origin.workloads[workload]
    return make_recorded(
        *(origin.environment, origin.settings, one.spec, one.name, origin.simulator), **arguments
    )
