"""Training one architecture: the same function makes the tables and trains on the spot.

All seeds of an architecture are trained side by side, as copies in one module, in one run to the
last epoch of the recipe; the accuracy at an earlier epoch (a lower fidelity) is a point of that
run, not a shorter run with its own schedule. Weights and the order of the images come
from NumPy's generators, so that they are the same on every device; on one machine, with one
thread, the same call gives the same numbers to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.nas.families import Task
from archgym.envs.nas.tasks import family_of

if TYPE_CHECKING:
    from torch import Tensor, nn

    from archgym.envs.nas.data import Dataset
    from archgym.envs.nas.families import Architecture

__all__ = ["RECIPES", "SEEDS", "Recipe", "one_thread", "train"]

SEEDS: Final = (0, 1, 2)
"""The seeds of the tables."""


@dataclass(frozen=True)
class Recipe:
    """How a task's networks are trained: Adam with decoupled weight decay, cosine learning rate."""

    epochs: tuple[int, ...] = (1, 3, 9, 27)
    """After which epochs the test set is looked at; the last is the end."""
    batch: int = 32
    learning_rate: float = 4e-3
    """Of the first step; it falls to 0 along half a cosine."""
    weight_decay: float = 1e-2


RECIPES: Final = {
    "cells": Recipe(batch=16),
    "digits": Recipe(),
    "digits_mbconv": Recipe(),
}
"""By task; other tasks have `Recipe`'s defaults."""


def train(
    task: Task,
    architecture: Architecture,
    data: Dataset,
    *,
    seeds: Sequence[int] = SEEDS,
    epochs: int | None = None,
    device: str = "cpu",
) -> NDArray[np.float64]:
    """Train and return the test accuracy or IoU in percent, shape (n_seeds, n_epochs).

    The columns are the recipe's epochs up to ``epochs`` (``None``: all). On a CPU the seeds are
    trained one after another, which is faster there than many channel groups.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums depend on the number of threads
    try:
        if device == "cpu":
            curves = [_curves(task, architecture, data, [seed], epochs, device) for seed in seeds]
            return np.concatenate(curves)
        return _curves(task, architecture, data, seeds, epochs, device)
    finally:
        torch.set_num_threads(threads)


def one_thread(device: str) -> None:
    """Make PyTorch in this process deterministic: one thread, no choice of kernels by time.

    For processes that do nothing but train: the settings hold for the whole process.
    """
    import torch

    torch.set_num_threads(1)
    if device != "cpu":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.allow_tf32 = False
    torch.use_deterministic_algorithms(True)


def _curves(
    task: Task,
    architecture: Architecture,
    data: Dataset,
    seeds: Sequence[int],
    epochs: int | None,
    device: str,
) -> NDArray[np.float64]:
    import torch

    recipe = RECIPES.get(task.name, Recipe())
    last = recipe.epochs[-1] if epochs is None else epochs
    network, optimiser = _prepared(task, architecture, recipe, seeds, device)
    images, labels = _on(device, data.train_images, data.train_labels)
    test_images, test_labels = _on(device, data.test_images, data.test_labels)
    shuffles = [np.random.default_rng([seed, 1]) for seed in seeds]
    batch = min(recipe.batch, len(images))
    steps = len(images) // batch
    curves: list[NDArray[np.float64]] = []
    for epoch in range(1, last + 1):
        network.train()
        orders = np.stack([rng.permutation(len(data.train_images)) for rng in shuffles])
        order = torch.from_numpy(orders[:, : steps * batch]).to(device)
        for step in range(steps):
            progress = ((epoch - 1) * steps + step) / (recipe.epochs[-1] * steps)
            optimiser.param_groups[0]["lr"] = (
                0.5 * recipe.learning_rate * (1.0 + np.cos(np.pi * progress))
            )
            chosen = order[:, step * batch : (step + 1) * batch].T
            optimiser.zero_grad(set_to_none=True)
            loss = _loss(task, network(_fast(images[chosen].flatten(1, 2))), labels[chosen])
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        if epoch in recipe.epochs:
            curves.append(_tested(task, network, test_images, test_labels, len(seeds)))
    return 100.0 * np.stack(curves, axis=1)


def _prepared(
    task: Task, architecture: Architecture, recipe: Recipe, seeds: Sequence[int], device: str
) -> tuple[nn.Module, Any]:
    import torch

    from archgym.envs.nas.families.torch_modules import initialise

    network = family_of(task).module(task, architecture, len(seeds))
    initialise(network, [np.random.default_rng([seed, 0]) for seed in seeds])
    network.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimiser = torch.optim.AdamW(
        network.parameters(),
        lr=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        fused=True,
    )
    return network, optimiser


def _fast(images: Tensor) -> Tensor:
    """Channels last in memory: oneDNN and cuDNN are about twice as fast on small images."""
    import torch

    return images.contiguous(memory_format=torch.channels_last)


def _on(device: str, *arrays: NDArray[Any]) -> tuple[Tensor, ...]:
    import torch

    return tuple(torch.from_numpy(array).to(device) for array in arrays)


def _loss(task: Task, logits: Tensor, labels: Tensor) -> Tensor:
    """Sum over the copies of each copy's mean loss; labels have shape (batch, copies, ...)."""
    from torch.nn import functional

    copies = labels.shape[1]
    if task.metric == "accuracy":
        flat = logits.reshape(-1, task.outputs)
        return copies * functional.cross_entropy(flat, labels.flatten())
    masks = labels.flatten(1, 2)
    return copies * functional.binary_cross_entropy_with_logits(logits, masks)


def _tested(
    task: Task, network: nn.Module, images: Tensor, labels: Tensor, copies: int
) -> NDArray[np.float64]:
    """Share of right classes, or pooled intersection over union, of each copy."""
    import torch

    network.eval()
    with torch.no_grad():
        parts = [network(_fast(part.repeat(1, copies, 1, 1))) for part in torch.split(images, 256)]
    logits = torch.cat(parts)
    if task.metric == "accuracy":
        right = logits.reshape(len(labels), copies, task.outputs).argmax(2) == labels[:, None]
        hits, of = right.sum(0), torch.full((copies,), len(labels))
    else:
        found, masks = logits > 0, labels > 0.5
        over = (0, 2, 3)
        hits, of = (found & masks).sum(over), (found | masks).sum(over)
    shares = hits.cpu().numpy() / np.maximum(of.cpu().numpy(), 1)
    return np.asarray(shares, dtype=np.float64)
