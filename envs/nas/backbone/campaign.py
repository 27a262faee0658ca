"""Measuring the latency of many networks and of their parts into CSV files within a time limit.

``python -m archgym.envs.nas.backbone.campaign --out DIR --seconds N`` measures on the GPU of this
machine and, beside it, on single cores of its processor, each by one process bound to its core. It
needs torch and nothing else. The networks come in one random order, the same on all devices, so
that those which were measured are a random sample wherever the time ends. Each device measures

1. networks (pass 1), until all asked for are done or 60 % of the time have passed,
2. the parts that any network of the space may hold, until 80 %,
3. the first of the networks again in another order (pass 2), a minute and more later,
4. further networks (pass 1) while time is left; on the cores the last 5 % are for pass 3: some
   networks a third time, on one core while the other ones have nothing to do.

Rows are written as they come.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import random
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from archgym.envs.nas.backbone.parts import (
    IMAGENET,
    Part,
    architecture_of,
    architectures,
    key_of,
    parts_of,
)
from archgym.envs.nas.backbone.timing import CoreTimer, GraphTimer, Sensors, Timer

__all__ = ["COLUMNS", "Plan", "Rows", "measure", "network_order", "part_order"]

COLUMNS: Final = (
    *("device", "subject", "pass", "batch", "time_us", "fastest_us", "runs", "finite"),
    *("clock_mhz", "temperature_c", "power_w", "core", "moment_s"),
)
"""Of the CSV files; ``subject`` is a network's or a part's key."""
PART: Final = 0
"""The pass of rows that are about parts."""
CALLS: Final = 8
"""Calls of a part that are timed together."""
_SHARES: Final = (0.6, 0.8, 0.95)


@dataclass(frozen=True)
class Plan:
    """What one process measures.

    Attributes:
        networks: keys, in order, for pass 1.
        parts: in order.
        again: networks of pass 2, from the first.
        alone: networks of pass 3, from the first.
        batches: pictures at a time.
        begun: when the campaign began, s since the epoch.
        seconds: that it lasts.
    """

    networks: Sequence[str]
    parts: Sequence[Part]
    again: int
    alone: int
    batches: tuple[int, ...]
    begun: float
    seconds: float


class Rows:
    """A CSV file to which several processes append whole lines."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | (os.O_CREAT if create else 0))
        if create:
            self.add(*COLUMNS)

    def add(self, *values: object) -> None:
        """Adds a row."""
        text = io.StringIO()
        row = [f"{v:.6g}" if isinstance(v, float) else v for v in values]
        csv.writer(text, lineterminator="\n").writerow(row)
        os.write(self._file, text.getvalue().encode())


def network_order(seed: int) -> list[str]:
    """Every network of the space in a random order."""
    keys = [key_of(each) for each in architectures(IMAGENET)]
    random.Random(seed).shuffle(keys)
    return keys


def part_order(seed: int) -> list[Part]:
    """Every part of any network, in a random order."""
    deepest = replace(IMAGENET, depths=tuple(depths[-1:] for depths in IMAGENET.depths))
    found = {part.key: part for each in architectures(deepest) for part in parts_of(IMAGENET, each)}
    parts = [found[key] for key in sorted(found)]
    random.Random(seed).shuffle(parts)
    return parts


def measure(
    plan: Plan,
    timer: Timer,
    add: Callable[[str, int, int, object], None],
    now: Callable[[], float] = time.time,
) -> None:
    """Carries a plan out.

    Args:
        plan: what to measure.
        timer: of the device.
        add: is given subject, pass, batch and what was timed.
        now: the time, s since the epoch.
    """
    from archgym.envs.nas.backbone.deployed import deployed, deployed_part

    ends = [plan.begun + share * plan.seconds for share in (*_SHARES, 1.0)]

    def network(key: str, number: int) -> None:
        parts = parts_of(IMAGENET, architecture_of(key))
        module = timer.prepared(lambda: deployed(parts))
        for batch in plan.batches:
            shape = (batch, parts[0].inputs, parts[0].size, parts[0].size)
            add(key, number, batch, timer.timed(module, shape))

    fresh = iter(plan.networks)
    done: list[str] = []

    def first(count: int, until: float) -> None:
        while len(done) < count and now() < until and (key := next(fresh, None)) is not None:
            network(key, 1)
            done.append(key)

    first(plan.again * 4, ends[0])
    for part in plan.parts:
        if now() >= ends[1]:
            break
        block = timer.prepared(lambda part=part: deployed_part(part))  # type: ignore[misc]
        for batch in plan.batches:
            shape = (batch, part.inputs, part.size, part.size)
            add(part.key, PART, batch, timer.timed(block, shape, CALLS))
    last = ends[2] if plan.alone else ends[3]
    repeated = done[: plan.again]
    random.Random(1).shuffle(repeated)
    for key in repeated:
        if now() >= last:
            break
        network(key, 2)
    first(len(plan.networks), last)
    for key in done[: max(plan.alone, 0)]:
        if now() >= ends[3]:
            break
        network(key, 3)


def cores() -> list[list[int]]:
    """Processors that this process may use, those of a physical core together."""
    allowed = sorted(os.sched_getaffinity(0))
    groups: dict[str, list[int]] = {}
    for number in allowed:
        path = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
        siblings = path.read_text(encoding="utf-8").strip() if path.exists() else str(number)
        groups.setdefault(siblings, []).append(number)
    if all(len(group) == 1 for group in groups.values()) and len(allowed) > 4:
        return [allowed[i : i + 2] for i in range(0, len(allowed), 2)]  # may be hidden siblings
    return list(groups.values())


def _on_core(given: argparse.Namespace) -> None:
    """The part of one process that measures on a core."""
    core, share, shares = given.core, given.share, given.shares
    os.sched_setaffinity(0, {core})
    rows = Rows(given.out / "core.csv", create=False)
    keys, parts = network_order(given.seed), part_order(given.seed)
    alone = 60 if share == 0 else -1
    plan = Plan(
        keys[share::shares],
        parts[share::shares],
        -(-given.again // shares),
        alone,
        (1,),
        given.begun,
        given.seconds,
    )

    def add(subject: str, number: int, batch: int, timed: object) -> None:
        moment = time.time() - given.begun
        rows.add("core", subject, number, batch, *vars(timed).values(), "", "", "", core, moment)

    measure(plan, CoreTimer(), add)


def _on_gpu(given: argparse.Namespace) -> None:
    rows, sensors = Rows(given.out / "gpu.csv"), Sensors()
    plan = Plan(
        network_order(given.seed),
        part_order(given.seed),
        given.again,
        0,
        (1, 64),
        given.begun,
        given.seconds,
    )
    count = 0

    def add(subject: str, number: int, batch: int, timed: object) -> None:
        nonlocal count
        moment = time.time() - given.begun
        readings = (sensors.clock_mhz, sensors.temperature_c, sensors.power_w)
        rows.add("gpu", subject, number, batch, *vars(timed).values(), *readings, "", moment)
        count += 1
        if count % 200 == 0:
            print(f"{moment:.0f} s: {count} rows, pass {number}", flush=True)

    try:
        measure(plan, GraphTimer(), add)
    finally:
        sensors.close()


def _describe(given: argparse.Namespace, groups: list[list[int]], used: list[int]) -> None:
    import torch

    def said(*command: str) -> str:
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
        except OSError:
            return ""

    query = "name,driver_version,power.limit,clocks.max.sm,clocks.max.mem,clocks.sm,vbios_version"
    described = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call]
        "smi": said("nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader").strip(),
        "asked": query,
        "processor": said("lscpu"),
        "cores": groups,
        "measuring_cores": used,
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "arguments": {name: str(value) for name, value in vars(given).items()},
    }
    (given.out / "machine.json").write_text(json.dumps(described, indent=1))


def _children(given: argparse.Namespace, used: list[int]) -> Iterator[subprocess.Popen[bytes]]:
    Rows(given.out / "core.csv")
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    for share, core in enumerate(used):
        numbers = {
            **{"core": core, "share": share, "shares": len(used), "again": given.again},
            **{"seed": given.seed, "seconds": given.seconds, "begun": given.begun},
        }
        arguments = [f"--{name}={value}" for name, value in numbers.items()]
        yield subprocess.Popen(
            [sys.executable, "-m", __spec__.name, f"--out={given.out}", *arguments], env=settings
        )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the rows")
    parser.add_argument("--seconds", type=float, default=480.0)
    parser.add_argument("--again", type=int, default=600, help="networks of pass 2")
    parser.add_argument("--cores", type=int, default=6, help="cores that measure, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-gpu", action="store_true")
    for name in ("core", "share", "shares"):
        parser.add_argument(f"--{name}", type=int, help="of a process that this one starts")
    parser.add_argument("--begun", type=float, default=time.time())
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.core is not None:
        _on_core(given)
        return
    groups = cores()
    kept = 0 if given.no_gpu else min(2, len(groups) - 1)
    used = [group[0] for group in groups[kept : kept + given.cores]]
    _describe(given, groups, used)
    children = list(_children(given, used))
    if not given.no_gpu:
        os.sched_setaffinity(0, {number for group in groups[:kept] for number in group})
        try:
            _on_gpu(given)
        except Exception:  # the cores go on
            traceback.print_exc()
    for child in children:
        child.wait(timeout=60 + given.seconds)
    print(f"{time.time() - given.begun:.0f} s: done", flush=True)


if __name__ == "__main__":
    main()
