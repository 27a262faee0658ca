"""Examples as datasets of PyTorch: in memory, and a stream that never is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from archgym.data.designs import design_columns, read_designs
from archgym.data.features import ExampleArrays, Featuriser, target_names
from archgym.data.rows import Rows
from archgym.errors import check_integer

Pair = tuple[torch.Tensor, torch.Tensor]


class ExampleDataset(Dataset[Pair]):
    """Pairs of features and targets, float32; a ``DataLoader`` takes it as it is.

    Attributes:
        examples: names and units.
        features: shape (n, n_features).
        targets: shape (n, n_targets).
    """

    def __init__(self, examples: ExampleArrays) -> None:
        self.examples = examples
        self.features = torch.as_tensor(examples.features, dtype=torch.float32)
        self.targets = torch.as_tensor(examples.targets, dtype=torch.float32)

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, index: int) -> Pair:
        return self.features[index], self.targets[index]


class ExampleStream(IterableDataset[Pair]):
    """Batches of features and targets, float32, of datasets larger than memory.

    It yields whole batches: give it to ``DataLoader(stream, batch_size=None)``. With several
    workers each takes its share of the batches.

    Args:
        selection: the rows; only those with status ``ok`` are taken.
        targets: names of metrics; all by default.
        features: form of the features, see :class:`archgym.data.features.Featuriser`.
        batch_size: rows a batch.
        seed: shuffles the rows of a block (some ten thousand) among themselves; by default
            they come in their order.

    Raises:
        UnknownNameError: if there is no such metric or form.
        InvalidValueError: if the batch size is below 1.
    """

    def __init__(
        self,
        selection: Rows,
        targets: Sequence[str] | None = None,
        *,
        features: str = "scaled",
        batch_size: int = 1024,
        seed: int | None = None,
    ) -> None:
        batch_size = check_integer("batch_size", batch_size, 1)
        self._rows = selection.where("status == ok")
        self.target_names = tuple(target_names(selection, targets))
        self._featuriser = Featuriser(selection.dataset.sidecar.space, features)
        self.feature_names = self._featuriser.names
        self._batch_size, self._seed = batch_size, seed

    def __iter__(self) -> Iterator[Pair]:
        worker = get_worker_info()
        mine, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        space = self._rows.dataset.sidecar.space
        rng = None if self._seed is None else np.random.default_rng(self._seed)
        columns = [*design_columns(space), *(f"metric.{name}" for name in self.target_names)]
        number = 0
        for table in self._rows.blocks(columns):
            order = np.arange(len(table)) if rng is None else rng.permutation(len(table))
            for start in range(0, len(table), self._batch_size):
                number += 1
                if number % workers != mine:
                    continue
                part = table.take(order[start : start + self._batch_size])
                features = self._featuriser(read_designs(space, part))
                targets = [part[f"metric.{name}"].to_numpy() for name in self.target_names]
                yield (
                    torch.as_tensor(features, dtype=torch.float32),
                    torch.as_tensor(np.column_stack(targets), dtype=torch.float32),
                )
