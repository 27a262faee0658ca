"""A million designs of a ten-parameter space: encode, decode, check, sample. Bar: 1 s each.

python benchmarks/space_speed.py [--n 1000000] [--repeats 3]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from step_overhead import TenParameters  # type: ignore[import-not-found]

from archgym.space import BoxEncoding, FeatureEncoding, MultiDiscreteEncoding, UnitCubeEncoding

BAR_S = 1.0


def best_of(repeats: int, work: Callable[[], object]) -> float:
    """Least seconds that the work took."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    space = TenParameters.design_space
    designs = space.sample(arguments.n, np.random.default_rng(0))
    work: dict[str, Callable[[], object]] = {
        "sample": lambda: space.sample(arguments.n, np.random.default_rng(0)),
        "check": lambda: space.legal(designs),
        "canonicalise": lambda: space.canonicalise(np.maximum(designs.codes, 0)),
        "keys": designs.keys,
    }
    for encoding in (
        MultiDiscreteEncoding(space),
        BoxEncoding(space),
        UnitCubeEncoding(space),
        FeatureEncoding(space),
    ):
        name, rows = type(encoding).__name__, encoding.encode(designs)
        work[f"{name}.encode"] = lambda e=encoding: e.encode(designs)  # type: ignore[misc]
        work[f"{name}.decode"] = lambda e=encoding, r=rows: e.decode(r)  # type: ignore[misc]
    print(f"{arguments.n:,} designs of {space!r}; bar: {BAR_S:g} s each")
    for name, do in work.items():
        print(f"{name:28} {best_of(arguments.repeats, do):6.3f} s")


if __name__ == "__main__":
    main()
