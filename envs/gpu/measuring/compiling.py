"""Compiling designs in several processes, without a GPU, into triton's cache."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from archgym.envs.gpu.parameters import Shape

WARP_SIZE = 32


@dataclass(frozen=True)
class Compiled:
    """What the compiler said of a design.

    Attributes:
        shape: name of the shape.
        design: values by parameter.
        shared_bytes: shared memory of a block; 0 if it was not compiled.
        reason: why it was not compiled; empty if it was.
    """

    shape: str
    design: Mapping[str, int]
    shared_bytes: int
    reason: str


class _Absent:
    """Stands in for triton's driver, so that compiling needs no GPU."""

    def __init__(self, capability: int) -> None:
        from triton.backends.compiler import GPUTarget

        self._target = GPUTarget("cuda", capability, WARP_SIZE)

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def use_no_gpu(capability: int) -> None:
    """Compiles in this process for a compute capability (90 for Hopper), without a GPU."""
    from triton.runtime.driver import driver

    driver.set_active(_Absent(capability))


def compiled(shape: Shape, designs: Iterable[Mapping[str, int]]) -> list[Compiled]:
    """Compiles designs in this process."""
    from archgym.envs.gpu.measuring.problem import Problem

    problem, found = Problem(shape, "meta"), []
    for design in designs:
        try:
            kernel = problem.warm(design)
            found.append(Compiled(shape.name, design, int(kernel.metadata.shared), ""))
        except Exception as error:  # whatever the compiler raises is a result
            reason = f"compile: {type(error).__name__}: {str(error).strip()[:200]}"
            found.append(Compiled(shape.name, design, 0, reason))
    return found


def compile_all(
    tasks: Iterable[tuple[Shape, list[Mapping[str, int]]]], capability: int, processes: int
) -> Iterator[list[Compiled]]:
    """Compiles parts of shapes in parallel; results come as they end."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, use_no_gpu, (capability,)) as pool:
        waiting: list[Future[list[Compiled]]] = [pool.submit(compiled, *task) for task in tasks]
        for done in as_completed(waiting):
            yield done.result()
