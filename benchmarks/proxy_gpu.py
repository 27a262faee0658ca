"""Batched predictions of a proxy with PyTorch: predictions a second on a CPU or a GPU.

``python benchmarks/proxy_gpu.py [cuda|cpu] [designs]`` trains networks on 2,000 random designs of
DRAM-v0, checks that PyTorch and NumPy agree, and times both. A prediction is one design, all
metrics of it; codes are on the device already, results stay there.
"""

from __future__ import annotations

import sys
import tempfile
import time

import numpy as np
import torch

import archgym
from archgym.data import load
from archgym.proxy import Settings, read_training_data, train
from archgym.proxy.torch_predictor import TorchPredictor
from archgym.registry import make_agent

_TARGETS = ["time_ns", "read_latency_mean_ns", "power_mw", "energy_pj"]


def main() -> None:
    device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 22
    with tempfile.TemporaryDirectory() as folder:
        env = archgym.make("DRAM-v0", workload="random", record=folder)
        make_agent("random", env.design_space, seed=0, batch_size=500).search(env, 2000)
        env.close()
        data = read_training_data(load(folder), _TARGETS)
    settings = Settings(("mlp",), options={"epochs": 60, "device": device})
    proxy = train(data, settings)
    designs = env.design_space.sample(n, np.random.default_rng(0))
    expected = proxy.predict(designs[:2000]).values
    began = time.perf_counter()
    proxy.predict(designs[: min(n, 100_000)])
    seconds = time.perf_counter() - began
    print(f"numpy, with intervals: {min(n, 100_000) / seconds:,.0f} predictions/s")
    for precision in ("float32", "bfloat16", "float16"):
        torch.backends.cuda.matmul.allow_tf32 = True
        predictor = TorchPredictor(proxy, device=device, precision=precision)
        codes = predictor.codes(designs.codes)
        found = predictor(codes[:2000]).cpu().numpy()
        error = float(np.max(np.abs(found / expected - 1)))
        seconds = min(_timed(predictor, codes, device) for _ in range(5))
        name = torch.cuda.get_device_name() if device.startswith("cuda") else "CPU"
        print(
            f"{name}, {precision}: {n / seconds:,.0f} predictions/s of {len(predictor.names)} "
            f"metrics each, largest difference from NumPy {error:.1e}"
        )


def _timed(predictor: TorchPredictor, codes: torch.Tensor, device: str) -> float:
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    began = time.perf_counter()
    predictor(codes)
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
