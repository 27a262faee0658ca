"""Latency of a module: replays of a CUDA graph on a GPU, calls on a core of a processor."""

from __future__ import annotations

import statistics
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import torch
from torch import nn

__all__ = ["CoreTimer", "GraphTimer", "Sensors", "Timed", "Timer"]


@dataclass(frozen=True)
class Timed:
    """One measurement at one moment.

    Attributes:
        time_us: median of the runs.
        fastest_us: the shortest run.
        runs: how many.
        finite: whether every number that came out is finite.
    """

    time_us: float
    fastest_us: float
    runs: int
    finite: bool


class Timer(Protocol):
    """What a measurement asks of a device."""

    def prepared(self, make: Callable[[], nn.Module]) -> nn.Module:
        """A module on the device, in its precision."""

    def timed(self, module: nn.Module, shape: tuple[int, ...], calls: int = 1) -> Timed:
        """Time of one call.

        Args:
            module: a prepared one.
            shape: of its input: pictures, channels, rows, columns.
            calls: that are timed together; the time of each is given.
        """


class GraphTimer:
    """Half precision, channels last, cuDNN's choice by trial, replays of a graph between events.

    Args:
        seconds: of replays for each measurement, about.
        trials: algorithms of each convolution that cuDNN tries.
    """

    _FEWEST: Final = 10
    _MOST: Final = 60

    def __init__(self, seconds: float = 0.03, trials: int = 5) -> None:
        self._seconds = seconds
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.benchmark_limit = trials
        self._measured = 0

    def prepared(self, make: Callable[[], nn.Module]) -> nn.Module:
        """See :class:`Timer`."""
        with torch.device("cuda"):
            module = make()
        return module.half().to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload,no-any-return]

    def timed(self, module: nn.Module, shape: tuple[int, ...], calls: int = 1) -> Timed:
        """See :class:`Timer`; several calls are one graph."""
        x = torch.randn(shape, device="cuda", dtype=torch.float16)
        x = x.contiguous(memory_format=torch.channels_last)
        graph = torch.cuda.CUDAGraph()
        with torch.inference_mode():
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                for _ in range(2):
                    module(x)
            torch.cuda.current_stream().wait_stream(self._stream)
            with torch.cuda.graph(graph):
                for _ in range(calls):
                    out = module(x)
        guess_us = statistics.median(_replayed(graph, 3))
        runs = int(self._seconds * 1e6 / max(guess_us, 1.0))
        times = _replayed(graph, max(self._FEWEST, min(self._MOST, runs)))
        finite = bool(out.isfinite().all())
        del graph, out
        self._measured += 1
        if self._measured % 16 == 0:
            torch.cuda.empty_cache()  # the memory of graphs that are gone
        return Timed(statistics.median(times) / calls, min(times) / calls, len(times), finite)


class CoreTimer:
    """Single precision, channels last, one thread, on the core that the process is bound to.

    Args:
        seconds: of calls for each measurement, about.
    """

    _FEWEST: Final = 5
    _MOST: Final = 40

    def __init__(self, seconds: float = 0.3) -> None:
        self._seconds = seconds
        torch.set_num_threads(1)

    def prepared(self, make: Callable[[], nn.Module]) -> nn.Module:
        """See :class:`Timer`."""
        return make().to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload,no-any-return]

    def timed(self, module: nn.Module, shape: tuple[int, ...], calls: int = 1) -> Timed:
        """See :class:`Timer`."""
        x = torch.randn(shape).contiguous(memory_format=torch.channels_last)
        times: list[float] = []
        with torch.inference_mode():
            for _ in range(2):
                out = module(x)
            begun = time.perf_counter()
            while len(times) < self._MOST:
                start = time.perf_counter()
                for _ in range(calls):
                    out = module(x)
                end = time.perf_counter()
                times.append((end - start) * 1e6)
                if len(times) >= self._FEWEST and end - begun > self._seconds:
                    break
        finite = bool(out.isfinite().all())
        return Timed(statistics.median(times) / calls, min(times) / calls, len(times), finite)


class Sensors:
    """The last readings of ``nvidia-smi``, each second; zeros where there is none.

    Attributes:
        clock_mhz: of the multiprocessors.
        temperature_c: of the GPU.
        power_w: of the GPU.
    """

    def __init__(self) -> None:
        self.clock_mhz, self.temperature_c, self.power_w = 0, 0, 0.0
        self._program: subprocess.Popen[str] | None = None
        asked = "--query-gpu=clocks.sm,temperature.gpu,power.draw"
        command = ["nvidia-smi", asked, "--format=csv,noheader,nounits", "-lms", "1000", "-i", "0"]
        try:
            self._program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        except OSError:
            return
        threading.Thread(target=self._watch, daemon=True).start()

    def close(self) -> None:
        """Ends the readings."""
        if self._program is not None:
            self._program.terminate()

    def _watch(self) -> None:
        program = self._program
        if program is None or program.stdout is None:
            return
        for line in program.stdout:
            clock, temperature, power = line.split(",")
            try:
                self.clock_mhz, self.temperature_c = int(clock), int(temperature)
                self.power_w = float(power)
            except ValueError:  # "[N/A]" of a machine that does not tell
                continue


def _replayed(graph: Any, count: int) -> list[float]:
    """Times of some replays, us."""
    starts, ends = ([_event() for _ in range(count)] for _ in range(2))
    for start, end in zip(starts, ends, strict=True):
        start.record()
        graph.replay()
        end.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) * 1e3 for a, b in zip(starts, ends, strict=True)]


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
