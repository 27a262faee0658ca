"""Bases of the agents that propose no design twice."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager, nullcontext

import numpy as np
from pydantic import Field

from archgym import agent
from archgym.agents.common.arrays import Ints
from archgym.agents.common.hyperparameters import BlockSize
from archgym.agents.common.moves import Moves
from archgym.agents.common.unseen import Unseen
from archgym.evaluation.outcome import Outcomes
from archgym.space import Designs

_BLOCK = 64
"""Designs drawn at once, however many are asked for, so that ``batch_size`` changes nothing."""


class NewDesignSampler(agent.Sampler):
    """Keeps account of the designs that it proposed or learned of, and can move and draw designs.

    A subclass whose hyperparameters have no ``batch_size`` overrides the property.
    """

    def setup(self) -> None:
        """Starts without any design."""
        self._moves = Moves(self.space, self.rng)
        self._unseen = Unseen(self.space, self.rng)

    @property
    def batch_size(self) -> int:
        """How many designs are asked for at once."""
        return int(self.hyperparameters.batch_size)

    def _expect(self, design: Designs) -> None:
        """Notes a design whose outcome is to come; nothing, unless overridden."""

    def _kicked(self, codes: Ints, changes: int) -> Designs:
        """An unseen design some moves away from one, the more the fewer are left around it."""
        return self._unseen.take(1, lambda n, more: self._moves.kick(codes, n, changes + more))

    def _working(self) -> AbstractContextManager[None]:
        """Context in which designs are chosen."""
        return nullcontext()


class SequentialSampler(NewDesignSampler):
    """Proposes one design after another; a subclass writes :meth:`_next`."""

    def ask(self, n: int) -> Designs:
        """Up to ``n`` designs, each chosen with those before it in mind."""
        asked = self.space.designs(())
        with self._working():
            while len(asked) < n and len(design := self._next()):
                self._expect(design)
                asked = asked.concatenate(design)
        return asked

    @abstractmethod
    def _next(self) -> Designs:
        """One design, marked as seen; none when nothing is left to propose."""


class BlockSampler(NewDesignSampler):
    """Proposes designs from a stream that does not depend on outcomes.

    A subclass writes :meth:`_block`.
    """

    class Hyperparameters(agent.Hyperparameters):
        """Hyperparameters of a search that does not look at outcomes."""

        batch_size: BlockSize = Field(
            64, description="designs proposed at once; has no effect on which"
        )

    def setup(self) -> None:
        """Starts without any design."""
        super().setup()
        self._ready = self.space.designs(())

    def ask(self, n: int) -> Designs:
        """Up to ``n`` designs; none once every legal design has been proposed."""
        while len(self._ready) < n and len(block := self._block(_BLOCK)):
            self._ready = self._ready.concatenate(block)
        asked, self._ready = self._ready[:n], self._ready[n:]
        return asked

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Remembers which designs are known."""
        self._unseen.add(designs)
        if len(self._ready):
            known = set(designs.keys())
            new = [key not in known for key in self._ready.keys()]  # noqa: SIM118
            self._ready = self._ready[np.array(new)]

    @abstractmethod
    def _block(self, n: int) -> Designs:
        """The next ``n`` new designs of the stream, marked as seen; fewer if no more are left."""
