"""Run time by events with a cold L2 cache, and power by the energy counter of NVML."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

_FLUSH_BYTES = 192 << 20
"""More than three times the L2 cache of the largest GPU known."""


_CYCLES_PER_S = 2e9
"""Of the multiprocessors, at most about so many."""
_LONGEST_S = 1e-3
"""That queueing a launch takes, s: longer ones were interrupted."""


@dataclass(frozen=True)
class Timed:
    """One measurement of a design at one moment.

    Attributes:
        time_us: median of the launches.
        fastest_us: the shortest launch.
        launches: how many.
        clock_mhz: of the multiprocessors, just after.
        temperature_c: of the GPU, just after.
    """

    time_us: float
    fastest_us: float
    launches: int
    clock_mhz: int
    temperature_c: int


COUNTER_PERIOD_S = 0.1
"""Time between two moves of the driver's energy counter, s: measured on an H200, driver 580."""


class Meter:
    """Times launches on one GPU and reads its sensors; it changes no setting.

    Args:
        index: of the GPU, for NVML.
        sensors: whether sensors are read, in a thread; without, clocks and temperatures are 0 and
            there is no power.
    """

    def __init__(self, index: int = 0, *, sensors: bool = True) -> None:
        self._flush = torch.empty(_FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
        self.clock_mhz, self.temperature_c = 0, 0
        self._queueing_s = 2e-4
        self.ticks: list[tuple[float, int]] = []
        if not sensors:
            return
        import pynvml

        pynvml.nvmlInit()
        self._nvml = pynvml
        self._gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
        # A reading takes milliseconds, so that they are taken beside the measurements.
        threading.Thread(target=self._watch, daemon=True).start()
        time.sleep(0.5)

    def timed(self, launch: Callable[[], Any], guess_us: float | None = None) -> Timed:
        """Time of a launch that has run before.

        Args:
            launch: runs the kernel once.
            guess_us: about how long it takes; more launches are timed of short ones.
        """
        count = 8 if guess_us is None else max(3, min(8, int(2500 / max(guess_us, 1.0))))
        starts = [_event() for _ in range(count)]
        ends = [_event() for _ in range(count)]
        # The GPU waits until all is queued: a launch that comes late would count as a longer time.
        waits = 2 * count * self._queueing_s * _CYCLES_PER_S
        torch.cuda._sleep(int(waits))  # type: ignore[no-untyped-call]
        begun = time.perf_counter()
        for start, end in zip(starts, ends, strict=True):
            self._flush.zero_()
            start.record()
            launch()
            end.record()
        self._queueing_s = min(_LONGEST_S, (time.perf_counter() - begun) / count)
        torch.cuda.synchronize()
        times = sorted(s.elapsed_time(e) * 1e3 for s, e in zip(starts, ends, strict=True))
        middle = (times[(count - 1) // 2] + times[count // 2]) / 2
        return Timed(middle, times[0], count, self.clock_mhz, self.temperature_c)

    def _watch(self) -> None:
        """Keeps the last readings, and the moments at which the energy counter moved."""
        nvml, gpu = self._nvml, self._gpu
        for turn in itertools.count():
            energy = int(nvml.nvmlDeviceGetTotalEnergyConsumption(gpu))
            now = time.perf_counter()
            if not self.ticks or energy != self.ticks[-1][1]:
                self.ticks.append((now, energy))
            if turn % 10 == 0:
                self.clock_mhz = int(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM))
            if turn % 40 == 0:
                sensor = nvml.NVML_TEMPERATURE_GPU
                self.temperature_c = int(nvml.nvmlDeviceGetTemperature(gpu, sensor))

    def power(
        self, launch: Callable[[], Any], time_us: float, *, warm_s: float = 0.15, ticks: int = 4
    ) -> tuple[float, float, int]:
        """Power while a kernel runs again and again, without flushes between.

        The driver moves its energy counter every tenth of a second: the energy between two such
        moments belongs to the time between.

        Args:
            launch: runs the kernel once.
            time_us: about how long it takes.
            warm_s: before the first reading, s.
            ticks: moves of the counter that are waited for after the first.

        Returns:
            Mean power, W; time of a launch in this, us; clock of the multiprocessors, MHz.
        """
        batch = max(1, min(200, int(4000 / max(time_us, 1.0))))
        graph = torch.cuda.CUDAGraph()  # launches one by one would leave the GPU idle between
        with torch.cuda.graph(graph):
            for _ in range(batch):
                launch()
        first = _event()
        first.record()
        queued: list[Any] = []
        replays, begun = 0, time.perf_counter()
        while True:
            graph.replay()
            replays += 1
            event = _event()
            event.record()
            queued.append(event)
            if replays > 3:  # some are in flight, so that the GPU never waits
                queued.pop(0).synchronize()
            seen = [tick for tick in self.ticks[-ticks - 4 :] if tick[0] >= begun + warm_s]
            if len(seen) > ticks or time.perf_counter() - begun > 2.0:
                break
        clock = self.clock_mhz
        torch.cuda.synchronize()
        time_us = first.elapsed_time(event) * 1e3 / (replays * batch)
        if len(seen) < 2:
            return math.nan, time_us, clock
        # The counter moves with a steady beat, while the readings that see it move come late by
        # up to half a beat: the time between two moves is a whole number of beats.
        beats = max(1, round((seen[-1][0] - seen[0][0]) / COUNTER_PERIOD_S))
        return (seen[-1][1] - seen[0][1]) / 1e3 / (beats * COUNTER_PERIOD_S), time_us, clock


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
