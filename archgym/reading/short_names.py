"""Short names of modules: the import paths that documentation uses, whatever package they are in.

``archgym.vector`` is the same module object as ``archgym.views.vector``, imported when it is first
asked for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

SHORT_NAMES: Final = {
    "archgym.agents.unseen": "archgym.agents.common.unseen",
    "archgym.agreement": "archgym.validation.agreement",
    "archgym.envs.accelerator.layer": "archgym.envs.accelerator.workload.layer",
    "archgym.envs.dram.formats": "archgym.envs.dram.traces.trace_files",
    "archgym.envs.dram.trace": "archgym.envs.dram.traces.trace",
    "archgym.external": "archgym.simulators.external",
    "archgym.parallel": "archgym.views.multi_agent",
    "archgym.reference": "archgym.problem.reference",
    "archgym.simulator": "archgym.problem.simulator",
    "archgym.statistics": "archgym.analysis.statistics",
    "archgym.stepwise": "archgym.views.stepwise",
    "archgym.tabular": "archgym.simulators.tabular",
    "archgym.vector": "archgym.views.vector",
}
"""The module behind each short name."""


class _ShortNames(MetaPathFinder, Loader):
    """Finds the modules of :data:`SHORT_NAMES` by their short names."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in SHORT_NAMES else None

    def exec_module(self, module: ModuleType) -> None:
        """Replaces the empty module that was made for a short name by the module behind it."""
        name = module.__name__
        sys.modules[name] = importlib.import_module(SHORT_NAMES[name])


def install() -> None:
    """Lets ``import`` find modules by their short names, where it finds none otherwise."""
    sys.meta_path.append(_ShortNames())
