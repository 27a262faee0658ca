"""The simulator ``nextpnr``: synthesises, places and routes each design.

The clock is the median over placement seeds; with several seeds their spread is known too.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any, Self

from archgym.envs.fpga.embedded import circuit, metrics_of
from archgym.envs.fpga.hardware.folding import Choices
from archgym.envs.fpga.network.spec import Network
from archgym.envs.fpga.place.nextpnr import nextpnr_version, placed, refusal, synthesised
from archgym.errors import InvalidValueError, SimulationError, UnknownNameError
from archgym.problem.simulator import SimulationResult
from archgym.simulators.external import private_folder, simulate_in_parallel
from archgym.simulators.yosys import require_yosys, yosys_version
from archgym.space import Designs

__all__ = ["NextpnrSimulator"]

_OPTIONS = ("seeds", "time_limit_s", "threads")
_MAX_SEEDS = 64


class NextpnrSimulator:
    """Synthesises, places and routes designs on one network.

    Args:
        network: what is computed.
        seeds: placement seeds from 1 on; with at least three the spread of the clock is given.
        time_limit_s: for synthesis and for each placement, s.
        threads: designs at a time; by default one for each core.

    Attributes:
        name: ``nextpnr``.
        version: of yosys and nextpnr, and the number of seeds.
        metric_names: all of the environment; the spread with three seeds or more.

    Raises:
        InvalidValueError: if an option is not possible.
        MissingDependencyError: if yosys is not installed or not prepared.
    """

    name = "nextpnr"

    def __init__(
        self,
        network: Network,
        metric_names: tuple[str, ...],
        *,
        seeds: int = 1,
        time_limit_s: float = 600.0,
        threads: int | None = None,
    ) -> None:
        if type(seeds) is not int or not 1 <= seeds <= _MAX_SEEDS:
            raise InvalidValueError(
                f"simulator_options: seeds is {seeds!r}, it must be from 1 to {_MAX_SEEDS}"
            )
        good = isinstance(time_limit_s, int | float) and not isinstance(time_limit_s, bool)
        if not good or not 0 < time_limit_s < 1e9:
            raise InvalidValueError(
                f"simulator_options: time_limit_s is {time_limit_s!r}, it must be above 0 and "
                "below 1e9"
            )
        if threads is not None and (type(threads) is not int or threads < 1):
            raise InvalidValueError(
                f"simulator_options: threads is {threads!r}, it must be an integer of at least 1"
            )
        require_yosys()
        self._network, self._seeds, self._limit_s = network, seeds, time_limit_s
        self.threads = threads
        self.version = f"yosys {yosys_version()}, nextpnr {nextpnr_version()}, {seeds} seeds"
        left_out = () if seeds > 2 else ("clock_mhz_spread_share",)
        self.metric_names: tuple[str, ...] = tuple(n for n in metric_names if n not in left_out)

    @classmethod
    def with_options(
        cls, options: Mapping[str, Any], network: Network, metric_names: tuple[str, ...]
    ) -> Self:
        """The simulator with options that a user gave.

        Raises:
            UnknownNameError: for an option that does not exist.
            InvalidValueError, MissingDependencyError: as the class.
        """
        for option in options:
            if option not in _OPTIONS:
                raise UnknownNameError("option", option, _OPTIONS, "simulator_options")
        return cls(network, metric_names, **options)

    def simulate(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Metrics of each design, or why there are none."""
        return simulate_in_parallel(self, designs, self.threads)

    def simulate_one(self, design: Mapping[str, Any]) -> Mapping[str, float]:
        """Metrics of one design.

        Raises:
            SimulationError: if it does not fit the device or cannot be routed.
            TimeoutError: if synthesis or a placement takes too long.
        """
        numbers, made, device = circuit(self._network, design)
        if reason := refusal(made, device):
            raise SimulationError(f"too large: {reason}")
        choices = Choices.of(design, device.dsp_bits)
        with private_folder() as folder:
            net = synthesised(made, choices, device, folder, time_limit_s=self._limit_s)
            clocks = [
                placed(device, folder, seed, time_limit_s=self._limit_s).clock_mhz
                for seed in range(1, self._seeds + 1)
            ]
        middle = statistics.median(clocks)
        spread = statistics.stdev(clocks) / middle if len(clocks) > 1 else 0.0
        found = metrics_of(
            numbers,
            made.schedule,
            device,
            luts=net.luts,
            ffs=net.ffs,
            dsps=net.dsps,
            block_rams=net.block_rams,
            clock_mhz=middle,
            spread=spread,
        )
        return {name: found[name] for name in self.metric_names}
