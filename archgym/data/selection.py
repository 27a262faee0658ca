"""The rows of a dataset as people use them: chosen, drawn, split, and read in many forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from archgym.data.examples import Examples, read_examples
from archgym.data.files import find_dataset, write_dataset
from archgym.data.rows import Rows
from archgym.data.splits import Split, split
from archgym.errors import DatasetError


def load(
    path: str | Path,
    where: str | Sequence[str] = (),
    *,
    agents: str | Sequence[str] = (),
    workloads: str | Sequence[str] = (),
) -> Selection:
    """Opens a dataset for reading and learning; nothing but what is asked for is ever in memory.

    >>> import archgym, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     env = archgym.make("Conformance-v0", record=folder)
    ...     _ = env.evaluate_batch([env.baseline, {**env.baseline, "ways": 2}])
    ...     env.close()
    ...     data = archgym.data.load(folder, "status == ok")
    ...     examples = data.examples(targets=["access_ns"])
    >>> len(data), examples.targets.shape, examples.target_units
    (2, (2, 1), ('ns',))

    Args:
        path: a dataset's folder, or that of a run with one dataset.
        where: conditions that rows must meet, such as ``"ways >= 4"``; see
            :mod:`archgym.data.condition`.
        agents: only rows of these agents; all by default.
        workloads: only rows of these workloads; all by default.

    Raises:
        DatasetError: if there is no dataset, or several.
        UnknownNameError: if a condition names a column, or an agent or workload a name, that the
            dataset does not have.
    """
    return Selection(find_dataset(path)).where(where, agents=agents, workloads=workloads)


class Selection(Rows):
    """Some rows of a dataset, all of them at first; it never changes.

    It keeps one bit for each row of the dataset, and reads rows when asked, a block at a time.

    Args:
        dataset: where the rows are.
    """

    def split(
        self,
        by: str,
        shares: Mapping[str, float] | None = None,
        *,
        seed: int = 0,
        hold_out: Sequence[str] = (),
    ) -> Split[Selection]:
        """Parts with no design in two of them; see :func:`archgym.data.splits.split`."""
        return split(self, by, shares, seed=seed, hold_out=hold_out)

    def examples(
        self,
        targets: Sequence[str] | None = None,
        *,
        features: str = "scaled",
        distinct: bool = True,
        dtype: Any = np.float64,
    ) -> Examples:
        """Features and targets for learning, as arrays; see :class:`~archgym.data.Examples`.

        Only of full simulations: ``where("fidelity == ...")`` and ``pandas()`` have the others.
        """
        full = self.where("fidelity == 1")
        return read_examples(full, targets, features=features, distinct=distinct, dtype=dtype)

    def write(self, folder: str | Path) -> int:
        """Writes the rows and their trials as a new dataset.

        Args:
            folder: the new dataset's; it must not be there, or be empty.

        Returns:
            Number of rows.

        Raises:
            DatasetError: if there are no rows, or the folder exists or cannot be written.
        """
        if not len(self):
            raise DatasetError(f"no row is left of {self.dataset.directory}: nothing was written")
        seen = self.values_of("trial_id")
        return write_dataset(
            folder,
            self.dataset.sidecar,
            [row for row in self.trials if row["trial_id"] in seen],
            self.blocks(self.dataset.schema.names),
            operations=self.operations,
            whole_trials=self.whole_trials,
        )
