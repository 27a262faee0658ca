"""Parameters whose values are orders of some items, such as the order of the loops of a loop nest.

Orders are numbered lexicographically: the order in which the items are given is level 0, the
reverse of it the last. The digits of that number in the factorial system (Lehmer code) say which
of the items that are left comes next.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from difflib import get_close_matches
from functools import cached_property
from itertools import combinations, permutations
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from archgym.errors import DesignError, InvalidValueError
from archgym.space.parameter import TABLE_LEVELS, About, Codes, Parameter, plain

MAX_ITEMS = 12
"""Maximum number of items: 12! orders are half a billion."""
_SEPARATOR = "-"
_MAX_SHOWN = 200


class Permutation(Parameter):
    """All orders of some items, each of which stands exactly once in an order.

    A value is a text: the items one after another if each is a single letter, else with a
    hyphen between them. Lists and tuples of items are accepted, too.

    Two orders are alike if they order many pairs of items alike (:meth:`discordance`).

    >>> order = Permutation("loop_order", ["K", "C", "P"])
    >>> order.size, order.value(1), order.code(["K", "P", "C"])
    (6, 'KPC', 1)
    >>> Permutation("stages", ["load", "compute", "store"]).value(5)
    'store-compute-load'

    Args:
        name: of the parameter.
        items: names of what is ordered, at most 12.
        about: see :class:`Parameter`.

    Attributes:
        items: names of what is ordered.

    Raises:
        InvalidValueError: if an item is no name or occurs twice, or if there are too many.
    """

    kind = "permutation"
    ordered = False

    def __init__(self, name: str, items: Iterable[str], **about: Unpack[About]) -> None:
        if isinstance(items, str):
            raise InvalidValueError(
                f"parameter {name!r}: items are a list such as {list(items)}, not {items!r}"
            )
        if isinstance(items, Set | Mapping) or not isinstance(items, Iterable):
            raise InvalidValueError(f"parameter {name!r}: items are a list, not {items!r:.80}")
        self.items: tuple[str, ...] = tuple(plain(item) for item in items)
        for item in self.items:
            if not isinstance(item, str) or not (item.isascii() and item.isidentifier()):
                raise InvalidValueError(
                    f"parameter {name!r}: an item cannot be {item!r}: allowed are names of "
                    "letters, digits and underscores that do not begin with a digit"
                )
        if len(set(self.items)) < len(self.items):
            raise InvalidValueError(f"parameter {name!r} lists an item twice: {list(self.items)}")
        if not 1 <= len(self.items) <= MAX_ITEMS:
            raise InvalidValueError(
                f"parameter {name!r}: 1 to {MAX_ITEMS} items are allowed, got {len(self.items)}"
            )
        super().__init__(name, math.factorial(len(self.items)), **about)
        self._separator = "" if all(len(item) == 1 for item in self.items) else _SEPARATOR
        self._numbers = {item: number for number, item in enumerate(self.items)}
        n = len(self.items)
        self._weights = np.array([math.factorial(n - 1 - i) for i in range(n)], dtype=np.int64)
        self._pairs = np.array(list(combinations(range(n), 2)), dtype=np.int64).reshape(-1, 2)

    # -- values --------------------------------------------------------------------------------

    def value(self, code: int) -> str:
        return self._text(self.orders(np.array([code]))[0].tolist())

    def code(self, value: Any) -> int:
        names = self._split(plain(value))
        try:
            order = [self._numbers[name] for name in names]
        except (KeyError, TypeError):
            raise self._refuse(value) from None
        if len(order) != len(self.items) or len(set(order)) < len(order):
            raise self._refuse(value)
        return int(self.codes_of(np.array([order]))[0])

    def values(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        if self.size <= TABLE_LEVELS:
            return np.asarray(self._texts[codes])
        found = np.empty(len(codes), dtype=object)
        found[:] = [self._text(order) for order in self.orders(codes).tolist()]
        return found

    def parse(self, text: str) -> str:
        return self.value(self.code(text))

    @property
    def range(self) -> str:
        return f"an order of {', '.join(self.items)}, such as {self._text(range(len(self.items)))}"

    # -- orders as arrays ----------------------------------------------------------------------

    def orders(self, codes: Codes) -> NDArray[np.int64]:
        """Numbers of the items in their order, shape (n, n_items)."""
        if self.size <= TABLE_LEVELS:
            return np.asarray(self._table_of_orders[codes])
        return self._orders(codes)

    def codes_of(self, orders: NDArray[np.int64]) -> Codes:
        """Levels of orders, shape (n, n_items); the inverse of :meth:`orders`."""
        smaller_before = np.zeros_like(orders)
        for place in range(1, orders.shape[1]):
            before = orders[:, :place] < orders[:, place, None]
            smaller_before[:, place] = before.sum(axis=1)
        return np.asarray((orders - smaller_before) @ self._weights)

    def positions(self, codes: Codes) -> NDArray[np.int64]:
        """Position of each item in the orders, from 0, shape (n, n_items)."""
        return np.asarray(self.orders(codes).argsort(axis=1))

    def precedence(self, codes: Codes) -> NDArray[np.float64]:
        """1 for each pair of items in the order of :attr:`items`, else -1, shape (n, n_pairs)."""
        positions = self.positions(codes)
        first, second = self._pairs.T
        return np.where(positions[:, first] < positions[:, second], 1.0, -1.0)

    @property
    def pair_names(self) -> list[tuple[str, str]]:
        """The pairs of items of :meth:`precedence`."""
        return [(self.items[one], self.items[other]) for one, other in self._pairs.tolist()]

    def discordance(self, first: Codes, second: Codes) -> NDArray[np.float64]:
        """Share of the pairs of items that two orders order differently, shape (n, m).

        It is Kendall's distance over its maximum: 0 for equal orders, 1 for reverse ones. Its
        square root is a Euclidean distance, so kernels that decay with it, such as the Mallows
        kernel, are positive definite (Jiao and Vert, The Kendall and Mallows Kernels for
        Permutations, ICML 2015). Renaming the items changes nothing (right-invariance).

        Args:
            first: levels, shape (n,).
            second: levels, shape (m,).
        """
        alike = self.precedence(first) @ self.precedence(second).T
        return np.asarray(0.5 - 0.5 * alike / max(1, len(self._pairs)))

    def neighbours(self, code: int) -> Codes:
        """Levels of the orders in which two items are swapped, or one is put elsewhere, sorted."""
        order = self.orders(np.array([code]))[0]
        return np.sort(self.codes_of(order[self._near_places]))

    # -- views ---------------------------------------------------------------------------------

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple(f"{self.name}[{item}]" for item in self.items)

    def places(self, codes: Codes) -> NDArray[np.float64]:
        """A key for each item: its position's equal share, its middle; shape (n, n_items)."""
        return (self.positions(codes) + 0.5) / len(self.items)

    def from_places(self, places: NDArray[np.float64]) -> Codes:
        """Items sorted by their keys (random keys: Bean, ORSA Journal on Computing 6, 1994)."""
        return self.codes_of(np.clip(places, 0.0, 1.0).argsort(axis=1, kind="stable"))

    @property
    def choices(self) -> tuple[int, ...]:
        return tuple(range(len(self.items), 1, -1)) or (1,)

    def digits(self, codes: Codes) -> NDArray[np.int64]:
        """Which of the items that are left comes next, shape (n, n_items - 1)."""
        width = len(self.choices)
        return np.asarray(codes[:, None] // self._weights[:width] % self.choices)

    def from_digits(self, digits: NDArray[np.int64]) -> Codes:
        return np.asarray(digits @ self._weights[: len(self.choices)])

    # -- inner workings ------------------------------------------------------------------------

    @cached_property
    def _table_of_orders(self) -> NDArray[np.int64]:
        return self._orders(np.arange(self.size))

    @cached_property
    def _near_places(self) -> NDArray[np.int64]:
        """From which place each item of a neighbour comes, shape (n_neighbours, n_items)."""
        places = list(range(len(self.items)))
        found = set()
        for one, other in permutations(places, 2):
            swapped = places.copy()
            swapped[one], swapped[other] = other, one
            rest = places[:one] + places[one + 1 :]
            found |= {tuple(swapped), (*rest[:other], one, *rest[other:])}
        return np.array(sorted(found), dtype=np.int64).reshape(-1, len(places))

    @cached_property
    def _texts(self) -> NDArray[Any]:
        texts = np.empty(self.size, dtype=object)
        texts[:] = [self._text(order) for order in self._table_of_orders.tolist()]
        return texts

    def _orders(self, codes: Codes) -> NDArray[np.int64]:
        orders = np.zeros((len(codes), len(self.items)), dtype=np.int64)
        left = np.asarray(codes, dtype=np.int64)
        for place, weight in enumerate(self._weights.tolist()):
            orders[:, place], left = np.divmod(left, weight)
        for place in reversed(range(len(self.items) - 1)):  # from digits to items
            orders[:, place + 1 :] += orders[:, place + 1 :] >= orders[:, place, None]
        return orders

    def _text(self, order: Iterable[int]) -> str:
        return self._separator.join(self.items[number] for number in order)

    def _split(self, value: Any) -> Sequence[Any]:
        """The items that a value names; nothing if it is neither text nor a list."""
        if not isinstance(value, str):
            return value if isinstance(value, list | tuple) else ()
        return list(value) if not self._separator else value.split(self._separator)

    def _refuse(self, value: Any) -> DesignError:
        names = [str(name) for name in self._split(plain(value))[: 2 * MAX_ITEMS]]
        faults = []
        if unknown := [name for name in names if name not in self._numbers]:
            faults.append(f"{unknown[0]!r:.20} is no item")
        elif twice := [name for i, name in enumerate(names) if name in names[:i]]:
            faults.append(f"{twice[0]!r} occurs twice")
        if names and (missing := [item for item in self.items if item not in names]):
            faults.append(f"missing: {', '.join(missing)}")
        why = f" ({'; '.join(faults)})" if faults else ""
        return DesignError(
            f"parameter {self.name!r} cannot be {value!r:.80}{why}. "
            f"Did you mean {self._repaired(value, names)!r}? Allowed is {self.range}"
        )

    def _repaired(self, value: Any, names: Sequence[str]) -> str:
        """The order that was probably meant: near misses corrected, the rest as far as it goes."""
        if isinstance(value, str):  # with whatever separators
            names = re.findall(r"\w+" if self._separator else r"\w", value[:_MAX_SHOWN])
        left = {item.casefold(): item for item in self.items}
        order: list[str | None] = []
        for name in names:
            near = get_close_matches(name.casefold(), left, n=1, cutoff=0.5)
            order.append(left.pop(near[0]) if near else None)
        rest = iter(left.values())
        whole = [item or next(rest, None) for item in order]
        return self._separator.join([*(item for item in whole if item), *rest])

    def _json_fields(self) -> dict[str, Any]:
        return {"items": list(self.items)}
