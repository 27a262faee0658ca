"""A shape with inputs on the GPU: launches designs of its kernel and checks their results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from archgym.envs.gpu.measuring import kernels
from archgym.envs.gpu.measuring.engine_kernel import engine_kernel
from archgym.envs.gpu.parameters import RESTS, TOLERANCES, Shape, engine_can

Design = Mapping[str, int]
Launch = Callable[[], Any]

TORCH_DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}
_SUM_BLOCK = 1024
_EPSILON = 1e-6


class Problem:
    """Inputs of a shape, the right result, and launches of designs.

    Args:
        shape: what is computed.
        device: of torch; with ``meta`` there are no inputs, and designs can only be compiled.
        seed: of the inputs, which are normally distributed.
    """

    def __init__(self, shape: Shape, device: str = "cuda", seed: int = 0) -> None:
        self.shape = shape
        self.dtype = TORCH_DTYPES[shape.dtype]
        self._device = device
        self._random = None if device == "meta" else torch.Generator(device).manual_seed(seed)
        self.output: torch.Tensor
        self._reference: torch.Tensor | None = None
        self._partial: torch.Tensor | None = None
        getattr(self, f"_make_{shape.kernel}")()

    def launch(self, design: Design) -> Launch:
        """A function that runs a design once and gives the compiled kernel."""
        made: Launch = getattr(self, f"_{self.shape.kernel}")(design)
        return made

    def torch_launch(self) -> Launch:
        """The same by PyTorch's own kernel."""
        made: Launch = getattr(self, f"_torch_{self.shape.kernel}")()
        return made

    def poison(self) -> None:
        """Fills the result with NaN, so that what a kernel does not write is noticed."""
        self.output.fill_(math.nan)

    def error(self) -> float:
        """Relative error of the result by its norm; NaN if anything is not finite."""
        if self._reference is None:
            self._reference = self.reference()
        difference = self.output.float() - self._reference
        return float((difference.norm() / self._reference.norm()).item())

    @property
    def tolerance(self) -> float:
        """The largest relative error of a right result."""
        return TOLERANCES[self.shape.dtype]

    def reference(self) -> torch.Tensor:
        """The right result in single precision."""
        made: torch.Tensor = getattr(self, f"_reference_{self.shape.kernel}")()
        return made

    def warm(self, design: Design) -> Any:
        """Compiles a design into triton's cache, runs nothing and gives the compiled kernel."""
        return getattr(self, f"_{self.shape.kernel}")(design, warm=True)

    def _normal(self, *sizes: int) -> torch.Tensor:
        if self._random is None:
            return torch.empty(sizes, dtype=self.dtype, device=self._device)
        made = torch.randn(sizes, generator=self._random, device=self._device)
        return made.to(self.dtype)

    # -- matrix product --------------------------------------------------------------------------

    def _make_gemm(self) -> None:
        m, n, k = (self.shape.sizes[size] for size in ("m", "n", "k"))
        self.a = self._normal(m, k)
        # The matrix units take eight-bit operands with adjacent elements along K only.
        self.b = self._normal(n, k).t() if self.shape.dtype == "fp8" else self._normal(k, n)
        kind = torch.float16 if self.shape.dtype == "fp8" else self.dtype
        self.output = torch.empty((m, n), dtype=kind, device=self._device)

    def _reference_gemm(self) -> torch.Tensor:
        return self.a.float() @ self.b.float()

    def _torch_gemm(self) -> Launch:
        if self.shape.dtype != "fp8":
            return lambda: torch.mm(self.a, self.b, out=self.output)
        one = torch.ones((), device=self._device)
        product = torch._scaled_mm
        return lambda: product(self.a, self.b, one, one, out_dtype=torch.bfloat16)

    def _gemm(self, design: Design, *, warm: bool = False) -> Launch:
        if design["copy_engine"]:
            return self._gemm_by_engine(design, warm=warm)
        m, n, k = (self.shape.sizes[size] for size in ("m", "n", "k"))
        steps = -(-k // design["block_k"])
        split = design["split_k"]
        tiles = -(-m // design["block_m"]) * -(-n // design["block_n"])
        if split > 1 and self._partial is None:
            size = (max(8, split), m, n)
            self._partial = torch.empty(size, dtype=torch.float32, device=self._device)
        rest = RESTS.get(design["block_n"], 0)
        out = self.output if split == 1 else self._partial
        arguments = (self.a, self.b, out, m, n, k, *self.a.stride(), *self.b.stride())
        kernel = kernels.gemm_kernel.warmup if warm else kernels.gemm_kernel.run
        constants = {
            "group_m": design["group_m"],
            "steps_per_split": -(-steps // split),
            "BLOCK_M": design["block_m"],
            "BLOCK_N": design["block_n"] - rest,
            "REST_N": rest,
            "BLOCK_K": design["block_k"],
            "EVEN_K": k % design["block_k"] == 0,
            "PARTIAL": split > 1,
            "num_warps": design["warps"],
            "num_stages": design["stages"],
            "grid": (tiles, split),
        }
        if warm:
            return kernel(*_dtypes(arguments), **constants)  # type: ignore[no-any-return]
        if split == 1:
            return lambda: kernel(*arguments, warmup=False, **constants)
        sizes = (self._partial, self.output, m * n, split)
        blocks = (triton.cdiv(m * n, _SUM_BLOCK),)

        def both() -> Any:
            compiled = kernel(*arguments, warmup=False, **constants)
            kernels.sum_kernel[blocks](*sizes, BLOCK=_SUM_BLOCK)
            return compiled

        return both

    def _gemm_by_engine(self, design: Design, *, warm: bool) -> Launch:
        if not engine_can(self.shape):
            raise ValueError("a row of an operand is no multiple of 16 bytes")
        m, n, k = (self.shape.sizes[size] for size in ("m", "n", "k"))
        high, deep = design["block_m"], design["block_k"]
        rest = RESTS.get(design["block_n"], 0)
        wide = design["block_n"] - rest
        along_k = self.shape.dtype == "fp8"
        b = self.b.t() if along_k else self.b
        tiles = TensorDescriptor.from_tensor
        widths = (wide, rest or wide)  # without other columns the second stands for nothing
        arguments = (
            tiles(self.a, [high, deep]),
            *(tiles(b, [one, deep] if along_k else [deep, one]) for one in widths),
            tiles(self.output, [high, wide]),
            *(self.output, m, n, k, design["group_m"]),
        )
        constants = {
            "BLOCK_M": high,
            "BLOCK_N": wide,
            "REST_N": rest,
            "BLOCK_K": deep,
            "ALONG_K": along_k,
            "num_warps": design["warps"],
            "num_stages": design["stages"],
            "grid": (-(-m // high) * -(-n // design["block_n"]),),
        }
        if warm:
            return engine_kernel.warmup(*_dtypes(arguments), **constants)  # type: ignore[no-any-return]
        return lambda: engine_kernel.run(*arguments, warmup=False, **constants)

    # -- attention -------------------------------------------------------------------------------

    def _make_attention(self) -> None:
        s = self.shape.sizes
        sizes = (s["batch"] * s["heads"], s["length"], s["head"])
        self.q, self.k, self.v = (self._normal(*sizes) for _ in range(3))
        self.output = torch.empty(sizes, dtype=self.dtype, device=self._device)

    def _reference_attention(self) -> torch.Tensor:
        length = self.shape.sizes["length"]
        made = torch.empty(self.q.shape, dtype=torch.float32, device=self._device)
        later = torch.ones((length, length), dtype=torch.bool, device=self._device).triu(1)
        for head in range(self.q.shape[0]):
            score = self.q[head].float() @ self.k[head].float().t()
            score /= math.sqrt(self.shape.sizes["head"])
            if self.shape.sizes["causal"]:
                score.masked_fill_(later, -math.inf)
            made[head] = score.softmax(-1) @ self.v[head].float()
        return made

    def _torch_attention(self) -> Launch:
        q, k, v = (one.unsqueeze(0) for one in (self.q, self.k, self.v))
        attend = torch.nn.functional.scaled_dot_product_attention
        causal = bool(self.shape.sizes["causal"])
        return lambda: attend(q, k, v, is_causal=causal)

    def _attention(self, design: Design, *, warm: bool = False) -> Launch:
        s = self.shape.sizes
        scale = 1.4426950408889634 / math.sqrt(s["head"])
        arguments = (self.q, self.k, self.v, self.output, s["length"], scale)
        kernel = kernels.attention_kernel.warmup if warm else kernels.attention_kernel.run
        constants = {
            "HEAD": s["head"],
            "BLOCK_M": design["block_m"],
            "BLOCK_N": design["block_n"],
            "CAUSAL": bool(s["causal"]),
            "num_warps": design["warps"],
            "num_stages": design["stages"],
            "grid": (-(-s["length"] // design["block_m"]), s["batch"] * s["heads"]),
        }
        if warm:
            return kernel(*_dtypes(arguments), **constants)  # type: ignore[no-any-return]
        return lambda: kernel(*arguments, warmup=False, **constants)

    # -- normalisation ---------------------------------------------------------------------------

    def _make_norm(self) -> None:
        rows, columns = self.shape.sizes["rows"], self.shape.sizes["columns"]
        self.x, self.residual = self._normal(rows, columns), self._normal(rows, columns)
        self.gain = self._normal(columns)
        # The sum and the normalised rows, checked together.
        self.output = torch.empty((2, rows, columns), dtype=self.dtype, device=self._device)

    def _reference_norm(self) -> torch.Tensor:
        h = self.x.float() + self.residual.float()
        scale = torch.rsqrt(h.square().mean(1, keepdim=True) + _EPSILON)
        return torch.stack((h, h * scale * self.gain.float()))

    def _torch_norm(self) -> Launch:
        normalise = torch.nn.functional.rms_norm
        width = (self.shape.sizes["columns"],)
        return lambda: normalise(self.x + self.residual, width, self.gain, _EPSILON)

    def _norm(self, design: Design, *, warm: bool = False) -> Launch:
        rows, columns = self.shape.sizes["rows"], self.shape.sizes["columns"]
        total, y = self.output[0], self.output[1]
        arguments = (self.x, self.residual, self.gain, total, y, rows, columns, _EPSILON)
        kernel = kernels.norm_kernel.warmup if warm else kernels.norm_kernel.run
        constants = {
            "BLOCK_ROWS": design["block_rows"],
            "BLOCK_COLUMNS": design["block_columns"],
            "ONE_PASS": design["block_columns"] >= columns,
            "STAGES": design["stages"],
            "num_warps": design["warps"],
            "grid": (-(-rows // design["block_rows"]),),
        }
        if warm:
            return kernel(*_dtypes(arguments), **constants)  # type: ignore[no-any-return]
        return lambda: kernel(*arguments, warmup=False, **constants)


def _dtypes(arguments: tuple[Any, ...]) -> list[Any]:
    return [one.dtype if isinstance(one, torch.Tensor) else one for one in arguments]
