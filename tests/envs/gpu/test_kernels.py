"""The kernels under Triton's interpreter, where triton is installed; it needs no GPU."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_PROGRAM = """
from archgym.envs.gpu.measuring.problem import Problem
from archgym.envs.gpu.parameters import Shape

gemm = dict(block_m=32, block_n=32, block_k=32, warps=4, stages=2, group_m=2, split_k=1,
            copy_engine=0)
engine = {**gemm, "block_m": 64, "block_n": 64, "copy_engine": 1}
attention = dict(block_m=32, block_n=16, warps=4, stages=1)
cases = [
    ("gemm", "fp16", dict(m=100, n=72, k=96), [gemm, {**gemm, "split_k": 4}]),
    ("gemm", "fp16", dict(m=40, n=40, k=80), [gemm, {**gemm, "group_m": 1}]),
    ("gemm", "fp16", dict(m=100, n=200, k=80),
     [{**gemm, "block_m": 64, "block_n": 192, "split_k": split} for split in (1, 4)]),
    ("gemm", "fp16", dict(m=100, n=72, k=96), [engine]),
    ("gemm", "fp16", dict(m=200, n=408, k=80),
     [{**engine, "block_n": columns, "group_m": 1} for columns in (128, 192, 320)]),
    ("attention", "fp16", dict(batch=1, heads=2, length=80, head=32, causal=1), [attention]),
    ("attention", "fp16", dict(batch=1, heads=2, length=80, head=32, causal=0), [attention]),
    ("norm", "fp16", dict(rows=10, columns=600),
     [dict(block_rows=4, block_columns=columns, warps=4, stages=1) for columns in (512, 1024)]),
]
for kernel, dtype, sizes, designs in cases:
    problem = Problem(Shape("case", kernel, dtype, sizes, ""), "cpu")
    for design in designs:
        problem.poison()
        problem.launch(design)()
        assert problem.error() <= problem.tolerance, (kernel, dtype, design, problem.error())
"""


@pytest.mark.full
def test_every_kernel_gives_what_pytorch_gives() -> None:
    pytest.importorskip("triton")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, timeout=300
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
