"""Speed of SoC-v0: random systems of the space ``full`` a second of CPU time, one core.

python -m benchmarks.soc_speed
"""

from __future__ import annotations

import time

import numpy as np

import archgym
from archgym.envs.soc.embedded import simulated
from archgym.envs.soc.environment import SoCEnvironment

SYSTEMS = 20_000


def main() -> None:
    """Prints systems a second for each workload."""
    for workload in SoCEnvironment.workloads():
        env = archgym.make("SoC-v0", workload=workload)
        assert isinstance(env, SoCEnvironment)
        designs = env.design_space.sample(SYSTEMS, np.random.default_rng(0))
        simulated(env.loaded, designs[:10])  # compiles
        start = time.process_time()
        simulated(env.loaded, designs)
        rate = SYSTEMS / (time.process_time() - start)
        print(f"{workload}: {rate:,.0f} systems a second")


if __name__ == "__main__":
    main()
