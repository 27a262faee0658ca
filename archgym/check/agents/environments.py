"""The environments on which agents are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from archgym.environment.environment import Environment
from archgym.problem.fidelity import Fidelity
from archgym.problem.simulator import MultiFidelitySimulator, SimulationResult, Simulator
from archgym.registry import make
from archgym.space import (
    Boolean,
    Categorical,
    Designs,
    DesignSpace,
    Integer,
    Ordinal,
    Real,
    Rule,
    param,
)

_Fault = Callable[[Mapping[str, Any]], Exception | None]
"""What is wrong with a design, if anything."""
_Results = Sequence[tuple[SimulationResult, float]]


@dataclass(frozen=True)
class Family:
    """An environment on which agents are checked.

    Attributes:
        name: short name, part of the checks' names.
        environment: registered name.
        arguments: of the environment.
    """

    name: str
    environment: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def make(self, **more: Any) -> Environment:
        """The environment, fresh."""
        return make(self.environment, **{**self.arguments, **more})


_SINGLE_VALUES = DesignSpace(
    [
        Categorical("replacement", ["lru"]),
        Ordinal("size_kb", [8]),
        Integer("ways", 4, 4),
        Boolean("prefetch"),
        Integer("distance", 1, 4, when=param("prefetch").isin([True])),
        Categorical("hint", ["only"], when=param("distance") >= 3),
        Real("voltage", 0.6, 1.1),
    ],
    [Rule("cool", param("voltage") * 10 + param("distance") <= 14, "hot when far ahead")],
)
_LIMITS = {"minimize": "access_ns", "limits": ["area_mm2 <= 0.2"]}
_GOALS = {"minimize": ["access_ns", "energy_pj"]}
_SERVED = {
    "model": "llama3_8b",
    "fleet": "a100_4",
    "requests": {"trace": "azure_conv", "rate_per_s": 20, "count": 60},
}
FAMILIES: tuple[Family, ...] = (
    Family("mixed", "Conformance-v0"),
    Family("finite", "Conformance-v0", {"space": "finite"}),
    Family("single values", "Conformance-v0", {"space": _SINGLE_VALUES}),
    Family("limits", "Conformance-v0", {"objective": _LIMITS}),
    Family("two goals", "Conformance-v0", {"space": "finite", "objective": _GOALS}),
    Family("accelerator", "Accelerator-v0", {"workload": "alexnet"}),
    Family("dram", "DRAM-v0", {"workload": {"generator": "zipf", "requests": 300}}),
    Family("fpga", "FPGA-v0", {"workload": "dense_8x8"}),
    Family("gpu", "GPUKernel-v0", {"workload": "square_1024"}),
    Family("cpu", "CPU-v0", {"workload": {"recorded": "sort", "instructions": 20_000}}),
    Family("llm", "LLMTraining-v0", {"workload": "gpt_1.7b_a100_32"}),
    Family("llm device", "LLMDevice-v0", {"workload": "phone"}),
    Family("llm serving", "LLMServing-v0", {"workload": _SERVED}),
    Family("nas", "NAS-v0", {"workload": "digits"}),
    Family("soc", "SoC-v0", {"workload": "cava"}),
    Family("tpe", "TPE-v0", {"workload": {"gemm": [64, 256, 64]}}),
)
"""One or more of each registered environment: mixed, conditional, with rules, limits, goals."""
SMALL = Family(
    "small",
    "Conformance-v0",
    # Prefetching 1 to 8 lines ahead or not at all, 1 to 4 ways: 36 designs, some of which fail.
    {"space": "finite", "fixed": {"replacement": "random", "size_kb": 1}},
)
FEW_LEVELS = Family(
    "few levels",
    "Conformance-v0",
    {"space": "default", "fixed": {"ways": 2, "distance": 3}},
)


class _Faulty:
    """A simulator that fails on some designs, once it is switched on."""

    def __init__(
        self, simulator: Simulator, fidelities: tuple[Fidelity, ...], fault: _Fault
    ) -> None:
        self.name, self.version = simulator.name, simulator.version
        self.metric_names = simulator.metric_names
        self.fidelities = fidelities
        self.on = False
        self._simulator, self._fault = simulator, fault

    def simulate(self, designs: Designs) -> _Results:
        return self._with_faults(designs, self._simulator.simulate(designs))

    def simulate_at(self, designs: Designs, fidelity: float) -> _Results:
        assert isinstance(self._simulator, MultiFidelitySimulator)
        return self._with_faults(designs, self._simulator.simulate_at(designs, fidelity))

    def _with_faults(self, designs: Designs, results: _Results) -> _Results:
        if not self.on:
            return results
        faults: Iterable[Any] = map(self._fault, designs)
        return [(fault or result, s) for fault, (result, s) in zip(faults, results, strict=True)]


def with_faults(family: Family, fault: _Fault) -> Environment:
    """The environment with a simulator that fails on some designs, the baseline excepted."""
    own = family.make()
    simulator = _Faulty(own.simulator, own.fidelities, fault)
    env = family.make(simulator=simulator)
    env.simulate_baseline()
    simulator.on = True
    return env
