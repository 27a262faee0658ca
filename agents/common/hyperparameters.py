"""Hyperparameters that several agents have."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from archgym import agent

BlockSize = Annotated[int, Field(ge=1, le=65_536)]
"""Number of designs that are drawn at once."""
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Factor = Annotated[float, Field(ge=0, le=100)]
Few = Annotated[int, Field(ge=1, le=1000)]
"""Of parameters that change together, or of passes over data."""
MaxData = Annotated[
    int,
    Field(
        ge=20,
        le=5000,
        description="maximum training designs of a model, half the best and half the newest",
    ),
]
Number = Annotated[int, Field(ge=1, le=10_000)]
"""Of best designs, trees, or steps."""
Part = Annotated[float, Field(gt=0, lt=1)]
"""A share that is neither none nor all."""
Patience = Annotated[int, Field(ge=0, le=1_000_000)]
"""Of fruitless attempts before something else is done."""
Period = Annotated[int, Field(ge=2, le=1_000_000)]
"""Number of designs between two events."""
PoolSize = Annotated[int, Field(ge=10, le=1_000_000)]
"""Number of designs that compete."""
Rate = Annotated[float, Field(gt=0, le=10)]
Repeats = Annotated[int, Field(ge=0, le=1000)]
Several = Annotated[int, Field(ge=2, le=4096)]
"""Of a population, of samples, or of levels: one alone makes no sense."""
Share = Annotated[float, Field(ge=0, le=1)]
Size = Annotated[int, Field(ge=1, le=4096)]
"""Of a batch, a population, or a layer."""
Steps = Annotated[int, Field(ge=1, le=100_000_000)]
Temperature = Annotated[float, Field(gt=0, le=100)]
Threshold = Annotated[int, Field(ge=1, le=100_000)]
"""Number of designs from which something else is done."""
Weight = Annotated[float, Field(ge=0, le=10)]


class BatchSize(agent.Hyperparameters):
    """How many designs are proposed at once."""

    batch_size: Size = Field(1, description="designs proposed at once")


class InitialDesigns(BatchSize):
    """How many designs are random, and how many are proposed at once."""

    n_initial: Threshold = Field(10, description="random designs before the first model")
