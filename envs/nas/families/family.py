"""The protocol of a family of networks: its parameters, its layers and its trainable module.

A *family* is a parametrised kind of network, an *architecture* one choice of its parameters: a
canonical mapping of parameter names to values, inactive parameters left out. All methods take the
task too, because the task fixes the input's shape, the outputs and the lists of options.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from archgym.envs.accelerator.workload.layer import Layer, Network
from archgym.envs.nas.families.task import Task
from archgym.errors import InvalidValueError
from archgym.space import Parameter

if TYPE_CHECKING:
    from torch import nn

__all__ = ["Architecture", "Family", "chain", "conv_parameters", "options_of", "same_conv"]

Architecture = Mapping[str, Any]
"""Parameter names (without the task's prefix) to values, inactive parameters left out."""

_Options = TypeVar("_Options")


class Family(Protocol):
    """A kind of network; `archgym.envs.nas.families.FAMILIES` lists them."""

    @property
    def name(self) -> str:
        """The name by which tasks refer to it."""

    @property
    def version(self) -> int:
        """Changes whenever an architecture's module would be trained to another accuracy."""

    def parameters(self, task: Task) -> tuple[Parameter, ...]:
        """The parameters of an architecture, with their conditions."""

    def layers(self, task: Task, architecture: Architecture) -> Network:
        """The layers that do multiply-accumulates, in execution order, each with count 1.

        One image (batch 1). Batch normalisation is folded into the convolution before it;
        pooling, activation functions, concatenation and element-wise additions are not counted.
        """

    def parameter_count(self, task: Task, architecture: Architecture) -> int:
        """Trainable numbers: weights, biases, scale and shift of batch normalisation."""

    def key(self, task: Task, architecture: Architecture) -> str:
        """A short text that is equal exactly for functionally equal architectures."""

    def module(self, task: Task, architecture: Architecture, copies: int = 1) -> nn.Module:
        """The trainable network, or ``copies`` independent ones side by side as channel groups.

        Input: shape (n, copies * channels, height, width), the copies' channels in blocks. Output:
        logits of shape (n, copies * outputs) for classes, (n, copies * outputs, height, width)
        for masks.
        """


def options_of(task: Task, kind: type[_Options]) -> _Options:
    """The task's options, which must be of the kind that the calling family needs.

    Raises:
        InvalidValueError: if the task belongs to another family.
    """
    if not isinstance(task.options, kind):
        raise InvalidValueError(
            f"task {task.name!r}: its options are {type(task.options).__name__}, "
            f"not the {kind.__name__} that this family needs (the task is of family "
            f"{task.family!r})"
        )
    return task.options


def chain(name: str, layers: Iterable[Layer]) -> Network:
    """Layers in execution order as a network; equal layers are not merged."""
    listed = tuple(layers)
    return Network(name, listed, (1,) * len(listed))


def same_conv(
    name: str, channels: int, filters: int, size: int, rows: int, columns: int, stride: int = 1
) -> Layer:
    """A padded convolution of an input with ``rows x columns`` pixels ("same": ceil / stride)."""
    return Layer(
        name,
        "conv",
        K=filters,
        C=channels,
        R=size,
        S=size,
        P=-(-rows // stride),
        Q=-(-columns // stride),
        stride=stride,
    )


def conv_parameters(channels: int, filters: int, size: int) -> int:
    """Weights of a convolution without bias, and the scale and shift of its normalisation."""
    return channels * filters * size * size + 2 * filters
