"""Hyperparameters that several agents have."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from archgym import agent

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Factor = Annotated[float, Field(ge=0, le=100)]
PoolSize = Annotated[int, Field(ge=10, le=1_000_000)]
"""Number of designs that compete."""
Share = Annotated[float, Field(ge=0, le=1)]
Size = Annotated[int, Field(ge=1, le=4096)]
"""Of a batch, a population, or a layer."""
Threshold = Annotated[int, Field(ge=1, le=100_000)]
"""Number of designs from which something else is done."""


class BatchSize(agent.Hyperparameters):
    """How many designs are proposed at once."""

    batch_size: int = Field(1, ge=1, le=4096, description="designs proposed at once")


class InitialDesigns(BatchSize):
    """How many designs are random, and how many are proposed at once."""

    n_initial: int = Field(
        10, ge=1, le=100_000, description="random designs before the first model"
    )
