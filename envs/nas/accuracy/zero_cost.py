"""Zero-cost scores: figures of an untrained network that predict its rank.

A score is **no accuracy**: it only orders the networks of one task, larger is better. Raw scores of
different tasks have different scales (the synaptic flow of a U-Net sums over many more pixels), so
that one task would dominate their sum. The source therefore gives

    (score - score of the smallest network) / |score of the largest - score of the smallest|

with the smallest and the largest network of the task: most lie between 0 and 1. On small spaces the
number of parameters alone is often as good as the others (Abdelfattah et al., "Zero-Cost Proxies
for Lightweight NAS", ICLR 2021), so it is available for comparison. Raw scores are

- ``synflow``: natural logarithm of the synaptic flow, the sum over the convolutions' weights of
  ``weight * dR/dweight``, where R is the sum of the outputs for an image of ones and every weight
  is replaced by its absolute value (Tanaka et al., NeurIPS 2020; as a score: Abdelfattah et al.).
  Batch normalisation has no effect (its statistics are 0 and 1). Attention gives every pixel the
  same weight: a softmax would end the flow through queries and keys. Needs no data.
- ``naswot``: logarithm of the determinant of the matrix that counts, for each pair of images, in
  how many ReLUs both are on or both off (Mellor et al., "Neural Architecture Search without
  Training", ICML 2021): large if the network separates the images. Uses the first training
  images of the task, or noise where the task has no data.
- ``parameters``: logarithm to base 10 of the number of trainable parameters. Needs no PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.nas.data import checked_folders, load
from archgym.envs.nas.families import Architecture, Task
from archgym.envs.nas.space import largest_architecture, smallest_architecture
from archgym.envs.nas.tasks import family_of
from archgym.errors import InvalidValueError, UnknownNameError

if TYPE_CHECKING:
    from torch import nn

__all__ = ["SCORES", "ProxyAccuracy", "naswot", "synflow"]

SCORES: Final = ("synflow", "naswot", "parameters")


class ProxyAccuracy:
    """Zero-cost scores as a source; see the module.

    >>> from archgym.envs.nas.tasks import TASKS
    >>> network = {"height": 1, "level1_filters": 4}
    >>> ProxyAccuracy("parameters").accuracies(TASKS["cells"], [network], 1).round(3).tolist()
    [0.0]

    Args:
        score: one of :data:`SCORES`.
        seed: of the weights.
        images: how many ``naswot`` looks at.
        data: folder of each data set that does not ship, by its name; without it ``naswot`` takes
            noise for these.

    Raises:
        UnknownNameError, InvalidValueError: for an argument that is not possible.
    """

    name = "proxy"
    synthetic = False
    epochs: tuple[int, ...] = (1,)

    def __init__(
        self,
        score: str = "synflow",
        seed: int = 0,
        images: int = 64,
        data: Mapping[str, str | Path] | None = None,
    ) -> None:
        if score not in SCORES:
            raise UnknownNameError("zero-cost score", score, SCORES)
        if images < 2:
            raise InvalidValueError(f"images is {images!r}; it must be at least 2")
        self.score = score
        self._seed = seed
        self._images = images
        self._folders = checked_folders(data)
        self._ends: dict[str, tuple[float, float]] = {}  # of each task's smallest and largest

    def accuracies(
        self, task: Task, architectures: Sequence[Architecture], epochs: int
    ) -> NDArray[np.float64]:
        """Scores on the task's scale, not percent; shape (n_architectures,).

        Args:
            task: what is learned.
            architectures: of the task's family.
            epochs: 1; nothing is trained.
        """
        if not len(architectures):
            return np.empty(0)
        if task.name not in self._ends:
            ends = self._raw(task, [smallest_architecture(task), largest_architecture(task)])
            self._ends[task.name] = (float(ends[0]), float(ends[1]))
        smallest, largest = self._ends[task.name]
        scale = abs(largest - smallest) or 1.0
        return (self._raw(task, architectures) - smallest) / scale

    def _raw(self, task: Task, architectures: Sequence[Architecture]) -> NDArray[np.float64]:
        """Scores as they are defined."""
        if self.score == "parameters":
            count = family_of(task).parameter_count
            return np.array([math.log10(count(task, each)) for each in architectures])
        score = (
            partial(synflow, input_shape=task.input_shape)
            if self.score == "synflow"
            else partial(naswot, images=self._seen(task))
        )
        return np.array([score(self._module(task, each)) for each in architectures])

    def _module(self, task: Task, architecture: Architecture) -> nn.Module:
        from archgym.envs.nas.families.torch_modules import initialise

        module = family_of(task).module(task, architecture)
        initialise(module, [np.random.default_rng([self._seed, 0])])
        return module

    def _seen(self, task: Task) -> NDArray[np.float32]:
        folder = self._folders.get(task.data or "")
        if task.data is not None and (folder is not None or not task.needs_folder):
            return load(task.data, folder).train_images[: self._images]
        shape = (self._images, *task.input_shape)
        return np.random.default_rng([self._seed, 2]).standard_normal(shape, dtype=np.float32)


def synflow(module: nn.Module, input_shape: tuple[int, int, int]) -> float:
    """Natural logarithm of the synaptic flow; the module is changed (absolute weights, double).

    In double precision: the flow of deep networks is beyond the range of single precision.
    """
    import torch
    from torch import nn

    from archgym.envs.nas.families.backbone_modules import Mixing

    module.double().eval()
    for layer in module.modules():
        if isinstance(layer, Mixing):
            layer.uniform = True
    weights = [layer.weight for layer in module.modules() if isinstance(layer, nn.Conv2d)]
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.abs_()
    flow = module(torch.ones((1, *input_shape), dtype=torch.float64)).sum()
    slopes = torch.autograd.grad(flow, weights)
    total = sum(
        float((weight.detach() * slope).sum())
        for weight, slope in zip(weights, slopes, strict=True)
    )
    return math.log(total)


def naswot(module: nn.Module, images: NDArray[np.float32]) -> float:
    """Logarithm of the determinant of the matrix of equal ReLU states.

    Batch normalisation uses the images' own statistics. Eigenvalues below the precision of the
    matrix count as that precision, so that networks for which two images are the same get a low
    score and not minus infinity.
    """
    import torch
    from torch import nn

    count = len(images)
    equal = np.zeros((count, count))

    def add(layer: nn.Module, given: Any, output: Any) -> None:
        on = (output.flatten(1) > 0).float()
        off = 1.0 - on
        equal[...] += (on @ on.T + off @ off.T).double().numpy()

    hooks = [
        layer.register_forward_hook(add) for layer in module.modules() if isinstance(layer, nn.ReLU)
    ]
    with torch.no_grad():
        module.train()(torch.from_numpy(images))
    for hook in hooks:
        hook.remove()
    eigenvalues = np.linalg.eigvalsh(equal)
    minimum = eigenvalues[-1] * count * np.finfo(np.float64).eps
    return float(np.log(np.maximum(eigenvalues, minimum)).sum())
