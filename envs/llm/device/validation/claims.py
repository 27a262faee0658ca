"""Published ratios between two devices: the designs of both, and which pair a claim is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from archgym.envs.llm.device.columns import NEAR_BANK, PROCESSOR, SRAM_TABLES, Columns, columns_of
from archgym.envs.llm.device.metrics import metric_columns
from archgym.envs.llm.device.workload import load_workload
from archgym.space import Boolean, Categorical, DesignSpace, Ordinal, Parameter

__all__ = ["CLAIMS", "Pair", "latency_ms", "ratio", "space_of"]

Design = Mapping[str, Any]


@dataclass(frozen=True)
class Pair:
    """A device and the one that it is compared with, on the same model.

    Attributes:
        label: model, bits, batch.
        workload: of the device.
        design: the device.
        base_workload: of the baseline.
        base: the baseline.
    """

    label: str
    workload: Mapping[str, Any]
    design: Design
    base_workload: Mapping[str, Any]
    base: Design


_GPT: Final = {
    "GPT-2 small": (12, 768, 12, 64),
    "GPT-2 medium": (24, 1024, 16, 64),
    "GPT-2 large": (36, 1280, 20, 64),
    "GPT-2 XL": (48, 1600, 25, 64),
    "GPT-3 small": (12, 768, 12, 64),
    "GPT-3 medium": (24, 1024, 16, 64),
    "GPT-3 large": (24, 1536, 16, 96),
    "GPT-3 XL": (24, 2048, 24, 128),
}
"""Layers, width, heads, width of a head (Radford et al., 2019; Brown et al., 2020, table 2.1)."""
_LLAMA: Final = {"Llama 2 7B": (32, 4096, 32, 11008), "Llama 2 13B": (40, 5120, 40, 13824)}
"""Layers, width, heads, inner width."""


def _pim_gpt() -> Iterator[Pair]:
    """A token at a mean context of 512: units at GDDR6 banks against PyTorch on a T4."""
    requests = {"prompt": 1, "output": 1023}
    for name, (layers, width, heads, head_size) in _GPT.items():
        model = {
            "layers": layers,
            "hidden": width,
            "heads": heads,
            "kv_heads": heads,
            "head_size": head_size,
            "feedforward_ratio": 4.0,
            "gated": False,
            "vocabulary": 50257,
            "tied_embeddings": True,
            "memory": "GDDR6-AiM",
        }
        inside = {
            "weight_bits": 16,
            "activation_bits": 16,
            "kv_bits": 16,
            "channels": 8,
            "ranks": 1,
            "mac_units": 2048,
            "clock_mhz": 1000,
            "sram_mib": 0.125,
            "products": NEAR_BANK,
            "attention_in_memory": True,
        }
        t4 = {
            "weight_bits": 32,
            "activation_bits": 32,
            "kv_bits": 32,
            "channels": 10,
            "ranks": 4,
            "mac_units": 65536,
            "clock_mhz": 1590,
            "sram_mib": 4.0,
            "products": PROCESSOR,
            "attention_in_memory": False,
        }
        yield Pair(
            name,
            requests,
            {**model, **inside},
            {**requests, "software": "pytorch"},
            {**model, **t4},
        )


def _sail() -> Iterator[Pair]:
    """Tables in SRAM against the same cores and memory without them."""
    for name, (layers, width, heads, inner) in _LLAMA.items():
        for bits in (2, 3, 4, 6, 8):
            for batch in (1, 8, 32):
                requests = {"prompt": 128, "output": 128, "batch": batch, "software": "cpu"}
                design = {
                    "layers": layers,
                    "hidden": width,
                    "heads": heads,
                    "kv_heads": heads,
                    "feedforward_ratio": inner / width,
                    "vocabulary": 32000,
                    "tied_embeddings": False,
                    "weight_bits": bits,
                    "activation_bits": 8,
                    "kv_bits": 16,
                    "memory": "DDR4-3200",
                    "channels": 8,
                    "ranks": 1,
                    "mac_units": 16 * 32,
                    "clock_mhz": 2500,
                    "sram_mib": 32.0,
                    "table_weights": 4,
                }
                yield Pair(
                    f"{name}, {bits} bits, batch {batch}",
                    requests,
                    {**design, "products": SRAM_TABLES},
                    requests,
                    {**design, "products": PROCESSOR},
                )


def ratio(pair: Pair) -> float:
    """How many times faster a token is on the device than on the baseline."""
    base = latency_ms(pair.base_workload, pair.base)
    return base / latency_ms(pair.workload, pair.design)


def latency_ms(workload: Mapping[str, Any], design: Design) -> float:
    """Latency of a token of a design, ms."""
    columns: Columns = columns_of(space_of([design]).designs([dict(design)]))
    return float(metric_columns(columns, load_workload(workload))["token_latency_ms"][0])


def space_of(designs: list[Design]) -> DesignSpace:
    """The values that occur, without conditions and rules.

    A space of one design has twice its clock too, as there is nothing to search in it otherwise.
    """
    if all(design == designs[0] for design in designs):
        designs = [*designs, {**designs[0], "clock_mhz": 2 * designs[0]["clock_mhz"]}]
    parameters: list[Parameter] = []
    for name in designs[0]:
        values = {design[name] for design in designs}
        if all(isinstance(value, bool) for value in values):
            parameters.append(
                Categorical(name, sorted(values)) if len(values) == 1 else Boolean(name)
            )
        elif all(isinstance(value, str) for value in values):
            parameters.append(Categorical(name, sorted(values)))
        else:
            parameters.append(Ordinal(name, sorted(values)))
    return DesignSpace(parameters)


def _highest(pairs: Callable[[], Iterator[Pair]]) -> Callable[[], Pair]:
    return lambda: max(pairs(), key=ratio)


def _lowest(pairs: Callable[[], Iterator[Pair]]) -> Callable[[], Pair]:
    return lambda: min(pairs(), key=ratio)


CLAIMS: Final[Mapping[str, Callable[[], Pair]]] = {
    "pim_gpt_highest": _highest(_pim_gpt),
    "pim_gpt_lowest": _lowest(_pim_gpt),
    "sail_highest": _highest(_sail),
}
"""The pair of each claim: that with the highest or the lowest ratio here."""
