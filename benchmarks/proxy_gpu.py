"""Batched predictions of a proxy with PyTorch: predictions a second on a CPU or a GPU.

``python benchmarks/proxy_gpu.py [cuda|cpu] [--proxy FILE] [--model mlp|residual] [--designs N]``
checks that PyTorch and NumPy agree on the networks of a proxy, and times both. Without a file it
trains networks on 2,000 random designs of DRAM-v0 first; with one it needs NumPy and PyTorch, and
neither Arrow nor Numba. A prediction is one design, all metrics of it; codes are on the device
already, results stay there. Compiled predictors are left out where there is no C compiler.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from archgym.proxy import Proxy, load_proxy
from archgym.proxy.torch.predictor import TorchPredictor

_TARGETS = ["time_ns", "read_latency_mean_ns", "power_mw", "energy_pj"]
_CHUNKS = (1 << 14, 1 << 16, 1 << 18)
_PRECISIONS = ("float32", "bfloat16", "float16")
_CHECKED = 2000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("device", nargs="?", default="cuda")
    parser.add_argument("--proxy", type=Path, help="a file that archgym proxy train wrote")
    parser.add_argument("--model", default="mlp", choices=("mlp", "residual"))
    parser.add_argument("--designs", type=int, default=1 << 22)
    parser.add_argument("--precision", nargs="+", default=_PRECISIONS, choices=_PRECISIONS)
    parser.add_argument("--chunk", nargs="+", type=int, default=_CHUNKS, help="designs at once")
    given = parser.parse_args()
    gpu = given.device.startswith("cuda")
    proxy = load_proxy(given.proxy) if given.proxy else _trained(given.model, given.device)
    designs = proxy.space.sample(min(given.designs, 1 << 18), np.random.default_rng(0))
    expected = proxy.predict(designs[:_CHECKED])
    few = designs[:100_000]
    began = time.perf_counter()
    proxy.predict(few)
    seconds = time.perf_counter() - began
    print(f"numpy, with intervals: {len(few) / seconds:,.0f} predictions/s")
    name = torch.cuda.get_device_name() if gpu else "CPU"
    print(f"{name}, PyTorch {torch.__version__}, {given.designs:,} designs a call", flush=True)
    torch.backends.cuda.matmul.allow_tf32 = True
    for compiled in (False, True) if gpu else (False,):
        for precision in given.precision:
            for chunk in given.chunk:
                torch.compiler.reset()  # what was compiled for another size is of no use
                predictor = TorchPredictor(
                    *(proxy, 0),
                    **{"device": given.device, "precision": precision},
                    chunk=chunk,
                    compiled=compiled,
                )
                codes = predictor.codes(designs.codes)
                codes = codes.repeat(-(-given.designs // len(codes)), 1)[: given.designs]
                try:
                    found = predictor(codes[: max(chunk, _CHECKED)])[:_CHECKED].cpu().numpy()
                except Exception as error:
                    if not compiled:
                        raise
                    print(f"not compiled: {type(error).__name__}: {str(error)[:200]}")
                    return
                columns = [expected.names.index(metric) for metric in predictor.names]
                wrong = float(np.max(np.abs(found / expected.values[:, columns] - 1)))
                seconds = min(_timed(predictor, codes, gpu) for _ in range(5))
                print(
                    f"{precision}{', compiled' if compiled else ''}, {chunk:,} at once: "
                    f"{given.designs / seconds:,.0f} predictions/s of {len(predictor.names)} "
                    f"metrics each, largest difference from NumPy {wrong:.1e}",
                    flush=True,
                )


def _trained(model: str, device: str) -> Proxy:
    import archgym
    from archgym.data import load
    from archgym.proxy import Settings, read_training_data, train
    from archgym.registry import make_agent

    with tempfile.TemporaryDirectory() as folder:
        env = archgym.make("DRAM-v0", workload="random", record=folder)
        make_agent("random", env.design_space, seed=0, batch_size=500).search(env, 2000)
        env.close()
        data = read_training_data(load(folder), _TARGETS)
    return train(data, Settings((model,), options={"epochs": 60, "device": device}))


def _timed(predictor: TorchPredictor, codes: torch.Tensor, gpu: bool) -> float:
    if gpu:
        torch.cuda.synchronize()
    began = time.perf_counter()
    predictor(codes)
    if gpu:
        torch.cuda.synchronize()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
