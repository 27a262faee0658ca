"""The design space: parameters, conditions and rules, and everything derived from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archgym.errors import DesignError, InvalidValueError, check_integer
from archgym.space.conditions_and_rules import ConstrainedSpace
from archgym.space.counting.cardinality import Ranking, count_canonical, enumerate_designs
from archgym.space.definition import Rule
from archgym.space.designs import MISSING, Designs, recoded
from archgym.space.expression import Expression
from archgym.space.kinds import parameter_from_json
from archgym.space.sampling import neighbours, sample


class DesignSpace(ConstrainedSpace):
    """Named, typed parameters with conditions and rules.

    A design is a mapping from the names of its *active* parameters to values. It is *canonical*
    when inactive parameters are left out, and *legal* when all rules hold.

    >>> from archgym.space import Categorical, Integer, param
    >>> space = DesignSpace([
    ...     Categorical("refresh", ["none", "all_bank"]),
    ...     Integer("postponed", 0, 8, when=param("refresh") == "all_bank"),
    ... ])
    >>> space.raw_cardinality, space.canonical_cardinality
    (18, 10)
    >>> space.canonical({"refresh": "none", "postponed": 3})
    {'refresh': 'none'}

    Args:
        parameters: in order; a condition looks only at parameters before its own.
        rules: what legal designs must keep.
        fixed: parameters that are not searched, with their values.
        excluded: values that parameters have and no design shall, as a list by parameter;
            conditions and rules may still name them.
        absent: parameters that like spaces have, each with the reason why this one has it not;
            said to who names one. It is not part of the space's JSON.

    Raises:
        InvalidValueError: if names repeat, a condition looks ahead, or a condition or rule
            compares a parameter with a value that it never has.
    """

    @cached_property
    def canonical_cardinality(self) -> float:
        """Exact number of distinct legal designs; ``inf`` with a free real parameter.

        Raises:
            SpaceTooLargeError: if it cannot be counted exactly.
        """
        return count_canonical(self) if self.raw_cardinality < math.inf else math.inf

    def fix(self, values: Mapping[str, Any]) -> DesignSpace:
        """The same space with some parameters held at a value and the rest to search.

        Raises:
            UnknownNameError: if a parameter does not exist.
            DesignError: if a value is not allowed.
        """
        return self._with({**self.fixed, **values}, self.excluded)

    def exclude(self, values: Mapping[str, Sequence[Any]]) -> DesignSpace:
        """The same space without some values of its parameters.

        >>> from archgym.space import Categorical, Integer
        >>> space = DesignSpace([Categorical("policy", ["open", "closed"]), Integer("ways", 1, 4)])
        >>> less = space.exclude({"policy": ["closed"], "ways": [2, 3]})
        >>> [design for chunk in less.enumerate() for design in chunk]
        [{'policy': 'open', 'ways': 1}, {'policy': 'open', 'ways': 4}]

        Args:
            values: a list of values by parameter, beside those that are excluded already.

        Raises:
            UnknownNameError: if a parameter does not exist.
            DesignError: if it does not have a value.
            InvalidValueError: if values are no list, none is left, a parameter is held at one of
                them, or it is real or a permutation.
        """
        if not isinstance(values, Mapping):
            raise InvalidValueError(
                f"exclude must be a mapping of parameters to lists of values, not {values!r:.80}"
            )
        excluded: dict[str, Any] = dict(self.excluded)
        for name, more in values.items():
            listed = isinstance(more, Sequence) and not isinstance(more, str)
            excluded[name] = [*excluded.get(name, ()), *more] if listed else more
        return self._with(self.fixed, excluded)

    def release(self, names: Iterable[str]) -> DesignSpace:
        """The same space with some parameters searched over all values.

        They are neither held at a value nor without those that they were declared with.

        Raises:
            UnknownNameError: if a parameter does not exist.
        """
        released = {self.names[self.index(name)] for name in names}
        kept = {
            what: {name: value for name, value in of.items() if name not in released}
            for what, of in (("fixed", self.fixed), ("excluded", self.excluded))
        }
        return self._with(**kept)

    def without_fixed(self) -> DesignSpace:
        """The same space with nothing held at a value."""
        return self._with({}, self.excluded)

    def _with(self, fixed: Mapping[str, Any], excluded: Mapping[str, Any]) -> DesignSpace:
        return DesignSpace(
            self.declared, self.rules, fixed=fixed, excluded=excluded, absent=self.absent
        )

    def parse(self, name: str, text: str) -> Any:
        """The value of a parameter that a text on a command line means.

        Raises:
            UnknownNameError: if there is no such parameter.
            DesignError: if the text means no value of it, or an excluded one.
        """
        try:
            return self[name].parse(text)
        except DesignError:
            if name in self.excluded:
                self.check_excluded(name, self.declared[self.index(name)].parse(text))
            raise

    # -- designs as mappings -------------------------------------------------------------------

    def canonical(self, design: Mapping[str, Any]) -> dict[str, Any]:
        """The design with inactive parameters left out, in the order of the space.

        Raises:
            UnknownNameError, DesignError: as :meth:`codes`.
        """
        return self.design(self.codes(design))

    def designs(self, designs: Iterable[Mapping[str, Any]]) -> Designs:
        """A batch from mappings.

        Raises:
            UnknownNameError, DesignError: as :meth:`codes`.
        """
        if isinstance(designs, Mapping | str) or not isinstance(designs, Iterable):
            raise DesignError(f"designs are a list of mappings, not {designs!r:.80}")
        rows = [self.codes(design) for design in designs]
        return Designs(self, np.array(rows, dtype=np.int64).reshape(len(rows), len(self.names)))

    def broken_rule(self, design: Mapping[str, Any]) -> str:
        """Why a design is not legal; empty if it is."""
        return self.illegal_reason(self.codes(design))

    # -- many designs --------------------------------------------------------------------------

    def illegal_reasons(self, designs: Designs) -> dict[int, str]:
        """:meth:`illegal_reason` of each design that is not legal, by its index."""
        return {
            i: self.illegal_reason(designs.codes[i].tolist())
            for i in np.flatnonzero(~self.legal(designs)).tolist()
        }

    def sample(self, n: int, rng: np.random.Generator) -> Designs:
        """Random legal designs: every level of a parameter is equally likely, then rules sift.

        Where the rules keep next to nothing, designs are drawn with the same probabilities from
        the counts of legal ones.

        Args:
            n: how many; repeats are possible.
            rng: the only source of randomness; integers are drawn, so that every machine
                gives the same.

        Raises:
            InvalidValueError: if ``n`` or ``rng`` is not possible.
            DesignError: if no design is legal, or next to none (one in 10,000 at most) and too
                many parameters depend on each other to count them.
        """
        if not isinstance(rng, np.random.Generator):
            raise InvalidValueError(
                f"rng must be a generator, as numpy.random.default_rng(0) is, not {rng!r:.80}"
            )
        return sample(self, check_integer("n", n, 0), rng)

    def neighbours(self, design: Mapping[str, Any]) -> Designs:
        """All legal designs that differ by one step of one active, free parameter.

        One step is the next or previous level of an ordered parameter, any other level of an
        unordered one, a hundredth of the range of a real one, and in a permutation two items
        swapped or one put elsewhere. A parameter that a step makes active takes its first level.
        """
        return neighbours(self, self.codes(design))

    def enumerate(self, chunk: int = 65_536) -> Iterator[Designs]:
        """All canonical legal designs, each once, in chunks.

        Raises:
            InvalidValueError: if a free parameter is real.
        """
        self._check_finite()
        yield from enumerate_designs(self, chunk)

    def rank(self, designs: Designs) -> NDArray[np.int64]:
        """Position of each design in :meth:`enumerate`, -1 if it is not there, shape (n,).

        The designs may be of another space with the same parameters, as one with other fixed or
        excluded values.

        >>> from archgym.space import DesignSpace, Integer
        >>> space = DesignSpace([Integer("ways", 1, 4), Integer("sets", 1, 8)])
        >>> space.rank(space.designs([{"ways": 1, "sets": 3}, {"ways": 4, "sets": 8}])).tolist()
        [2, 31]

        Raises:
            InvalidValueError: if a free parameter is real.
            SpaceTooLargeError: if too many parameters depend on each other.
        """
        codes = recoded(designs, self)
        if codes is designs.codes:
            return self._ranking.rank(codes)
        there = (codes != MISSING).all(axis=1)
        ranks = np.full(len(codes), -1, dtype=np.int64)
        ranks[there] = self._ranking.rank(codes[there])
        return ranks

    def unrank(self, positions: NDArray[np.int64]) -> Designs:
        """The designs at positions in :meth:`enumerate`; the inverse of :meth:`rank`.

        Raises:
            InvalidValueError: if there is no such position, or a free parameter is real.
            SpaceTooLargeError: if too many parameters depend on each other.
        """
        return Designs(self, self._ranking.unrank(np.asarray(positions, dtype=np.int64)))

    @cached_property
    def _ranking(self) -> Ranking:
        self._check_finite()
        return Ranking(self)

    def _check_finite(self) -> None:
        for position in self.free:
            if self.parameters[position].continuous:
                raise InvalidValueError(
                    f"parameter {self.names[position]!r} is real: fix it, or make it an Ordinal"
                )

    # -- JSON ----------------------------------------------------------------------------------

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> DesignSpace:
        """The inverse of :meth:`to_json`.

        Raises:
            InvalidValueError, UnknownNameError: if the data do not describe a space.
        """
        if not isinstance(data, Mapping) or "parameters" not in data:
            raise InvalidValueError("not a design space: 'parameters' is missing")
        return DesignSpace(
            [parameter_from_json(p) for p in data["parameters"]],
            [
                Rule(r["name"], Expression.from_json(r["expression"]), r.get("doc", ""))
                for r in data.get("rules", ())
            ],
            fixed=data.get("fixed"),
            excluded=data.get("excluded"),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return DesignSpace.from_json, (self.to_json(),)
