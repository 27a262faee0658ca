"""Recipes of the shipped observed operands: trains small networks and counts their operands.

``python -m archgym.envs.tpe.workload.recipes FOLDER`` trains each network of :data:`RECIPES` on the
digits of scikit-learn (1797 images of 8 x 8 pixels, from the UCI repository), quantises weights and
activations to 8 bits, runs the test images through it and writes ``NAME.json``: the shape of each
matrix product and how often each 8-bit code occurs in both operands. It takes some seconds.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archgym.errors import UnknownNameError

if TYPE_CHECKING:
    import torch

__all__ = ["RECIPES", "Recipe", "make", "write"]

_TEST_IMAGES = 360
"""The last ones: other hands wrote them than most of the others."""


@dataclass(frozen=True)
class Recipe:
    """A network to train.

    Attributes:
        title: one line for listings.
        network: class in :mod:`archgym.envs.tpe.workload.recipe_networks`.
        epochs: times that it sees each training image.
    """

    title: str
    network: str
    epochs: int


def make(name: str, *, seed: int = 0) -> dict[str, Any]:
    """Trains a network and observes its operands.

    Args:
        name: one of :data:`RECIPES`.
        seed: of the weights and the order of the images.

    Returns:
        A card that :mod:`archgym.envs.tpe.workload.workload` reads.

    Raises:
        UnknownNameError: if there is no such recipe.
    """
    if name not in RECIPES:
        raise UnknownNameError("recipe", name, RECIPES)
    import sklearn
    import torch

    from archgym.envs.tpe.workload import recipe_networks

    recipe = RECIPES[name]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums in one order: the same weights again on one machine
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            images, labels = _digits()
            network = getattr(recipe_networks, recipe.network)()
            _train(network, images[:-_TEST_IMAGES], labels[:-_TEST_IMAGES], recipe.epochs)
            test, truth = images[-_TEST_IMAGES:], labels[-_TEST_IMAGES:]
            with torch.no_grad():
                plain = float((network(test).argmax(1) == truth).double().mean())
                network.products.observing = True
                coded = float((network(test).argmax(1) == truth).double().mean())
    finally:
        torch.set_num_threads(threads)
    return {
        "title": recipe.title,
        "data": "scikit-learn's digits (UCI optical recognition of handwritten digits): trained on "
        f"the first {len(images) - _TEST_IMAGES} images, observed on the last {_TEST_IMAGES}",
        "quantisation": "8 bits, symmetric, one scale a tensor: the greatest magnitude is 127",
        "accuracy": {"float32": round(plain, 4), "8 bits": round(coded, 4)},
        "recipe": f"python -m archgym.envs.tpe.workload.recipes, network {name}, seed {seed}",
        "versions": {"torch": torch.__version__, "scikit-learn": sklearn.__version__},
        "licence": "Apache-2.0, as archgym; histograms of a network trained by this recipe",
        "products": network.products.observed,
    }


def write(folder: Path) -> None:
    """Makes all cards anew, a file each."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in RECIPES:
        card = make(name)
        head = {key: value for key, value in card.items() if key != "products"}
        rows = ",\n".join(f"  {json.dumps(product)}" for product in card["products"])
        text = f'{json.dumps(head, indent=1)[:-2]},\n "products": [\n{rows}\n ]\n}}\n'
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


def _digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Images (n, 64) from 0 to 1, and labels (n,)."""
    import torch
    from sklearn.datasets import load_digits

    data = load_digits()
    return torch.tensor(data.data / 16, dtype=torch.float32), torch.tensor(data.target)


def _train(network: Any, images: torch.Tensor, labels: torch.Tensor, epochs: int) -> None:
    import torch

    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=1e-2)
    steps = epochs * (len(images) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    for _ in range(epochs):
        order = torch.randperm(len(images))
        for batch in order[: len(order) // 64 * 64].reshape(-1, 64):
            loss = torch.nn.functional.cross_entropy(network(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()


RECIPES = {
    "digits_mlp": Recipe("multilayer perceptron on scikit-learn's digits, 8 bits", "Mlp", 30),
    "digits_cnn": Recipe("convolutional network on scikit-learn's digits, 8 bits", "Cnn", 20),
    "digits_transformer": Recipe("transformer on scikit-learn's digits, 8 bits", "Transformer", 40),
}
"""The networks, by the name of the workload that each gives."""


if __name__ == "__main__":
    write(Path(sys.argv[1]))
