"""Memory of a stage: parameters, gradients, optimizer, activations."""

from __future__ import annotations

from typing import Any

from archgym.envs.llm.cost.compiled import compiled

__all__ = ["layer_parameters", "table_parameters"]


@compiled
def layer_parameters(model: Any, plan: Any, sparse: bool) -> tuple[float, float]:
    """Parameters of a layer on one GPU: those that all data-parallel ranks share, and experts."""
    width = float(model.hidden)
    query = float(model.heads * model.head_size) / plan.tensor
    value = max(1.0, float(model.kv_heads) / plan.tensor) * model.head_size
    shared = 2.0 * width * query + 2.0 * width * value + 4.0 * width
    if not sparse:
        return shared + model.matrices * width * float(model.feedforward) / plan.tensor, 0.0
    expert = model.matrices * width * float(model.expert_feedforward) / plan.tensor
    shared += model.shared_experts * expert + width * model.experts
    return shared, expert * model.experts / plan.expert


@compiled
def table_parameters(model: Any, plan: Any) -> float:
    """Parameters of the embedding, or of the output layer, on one GPU."""
    return float(model.vocabulary) * model.hidden / plan.tensor
