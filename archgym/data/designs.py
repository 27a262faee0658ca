"""Designs in the table of evaluations: as codes, and as fingerprints that say which are equal."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from archgym.errors import DesignError, check_integer
from archgym.space import Designs, DesignSpace, Parameter

NO_LEVEL = -2
"""Code in :func:`design_codes` of a value that the parameter does not have."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio
_INACTIVE = np.uint64(0xA5A5F00D5EED1E55)


def design_columns(space: DesignSpace) -> list[str]:
    """Names of the columns that hold a design's values, in the order of the space."""
    return [f"param.{name}" for name in space.names]


def read_designs(space: DesignSpace, table: pa.Table) -> Designs:
    """The designs of the rows.

    Raises:
        DesignError: if a value is not one of its parameter's.
    """
    return Designs(space, design_codes(space, table))


def design_codes(
    space: DesignSpace, table: pa.Table, *, no_level: bool = False
) -> NDArray[np.int64]:
    """Level of each parameter, -1 where it is inactive, shape (n_rows, n_parameters).

    Args:
        space: the design space.
        table: rows with a column ``param.NAME`` for each parameter.
        no_level: put :data:`NO_LEVEL` where a value is not one of its parameter's, and raise
            nothing.

    Raises:
        DesignError: if a value is not one of its parameter's.
    """
    codes = np.full((table.num_rows, len(space.names)), -1, dtype=np.int64, order="F")
    for position, parameter in enumerate(space.parameters):
        level = functools.partial(_level, parameter, no_level=no_level)
        codes[:, position] = looked_up(table[f"param.{parameter.name}"], level, np.int64)
    return codes


def looked_up(
    column: pa.ChunkedArray | pa.Array, find: Callable[[Any], Any], dtype: Any
) -> NDArray[Any]:
    """What a function finds for each row of a column, called once a value, shape (n_rows,).

    Args:
        column: values, many of them equal.
        find: a function of a value, or of ``None`` for a missing one. A column may list values
            that none of its rows has.
        dtype: of the result.
    """
    if isinstance(column, pa.ChunkedArray):
        column = _single(column)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    values = [*column.dictionary.to_pylist(), None]
    index = column.indices.fill_null(len(values) - 1).to_numpy()
    return np.asarray(np.array([find(value) for value in values], dtype=dtype)[index])


def design_fingerprints(space: DesignSpace, table: pa.Table) -> NDArray[np.uint64]:
    """A 64-bit number a row that is equal for equal designs, shape (n_rows,).

    Two different designs share one with probability 2**-64; among ten million designs that
    happens once in 400,000 datasets.
    """
    return column_fingerprints(table.select(design_columns(space)))


def column_fingerprints(table: pa.Table) -> NDArray[np.uint64]:
    """A 64-bit number a row that is equal for rows with equal values, shape (n_rows,)."""
    found = np.zeros(table.num_rows, dtype=np.uint64)
    for position, column in enumerate(table.columns):
        seen = _column(_single(column))
        with np.errstate(over="ignore"):
            found = mixed(found ^ (seen + _GOLDEN * np.uint64(position + 1)))
    return found


def fingerprint(texts: str | Iterable[str]) -> np.uint64:
    """A 64-bit number of one text, or of several in their order."""
    digest = hashlib.blake2b(digest_size=8)
    for text in [texts] if isinstance(texts, str) else texts:
        digest.update(f"{len(text)}:{text}".encode())
    return np.uint64(int.from_bytes(digest.digest(), "little"))


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Each word's bits spread over all 64 (the finaliser of SplitMix64, Steele and others 2014)."""
    with np.errstate(over="ignore"):
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        found: NDArray[np.uint64] = words ^ (words >> np.uint64(31))
    return found


def shuffled(words: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Fingerprints as other random numbers: their order is a random one, which the seed decides.

    Raises:
        InvalidValueError: if the seed is not an integer of at least 0.
    """
    seed = check_integer("seed", seed, 0)
    return mixed(words ^ np.random.default_rng(seed).integers(1 << 64, dtype=np.uint64))


def uniform(words: NDArray[np.uint64], seed: int) -> NDArray[np.float64]:
    """A uniform number in [0, 1) for each fingerprint, which the seed decides."""
    # The top 53 bits fill a float exactly.
    return np.asarray((shuffled(words, seed) >> np.uint64(11)) * 2.0**-53)


def _level(parameter: Parameter, value: Any, *, no_level: bool) -> int:
    if value is None:
        return -1
    try:
        code = parameter.code(value)
        if parameter.continuous and parameter.value(code) != value:
            raise DesignError(
                f"parameter {parameter.name!r}: {value!r} is not on its grid, "
                f"the nearest is {parameter.value(code)!r}"
            )
    except DesignError:
        if no_level:
            return NO_LEVEL
        raise
    return code


def _single(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # of several dictionaries, or of no chunk at all
        whole = pa.concat_arrays(whole.unify_dictionaries().chunks or [pa.array([], whole.type)])
    return whole


def _column(column: pa.Array) -> NDArray[np.uint64]:
    """Each value of a column as a word."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_dictionary(kind):
        return looked_up(column, _word, np.uint64)
    missing = column.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_floating(kind):
        numbers = column.cast(pa.float64()).fill_null(0.0).to_numpy() + 0.0  # no negative zero
        words = numbers.view(np.uint64)
    elif pa.types.is_boolean(kind):
        words = column.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint64)
    else:
        words = column.cast(pa.int64()).fill_null(0).to_numpy().astype(np.uint64)
    return np.where(missing, _INACTIVE, words)


def _word(text: str | None) -> np.uint64:
    return _INACTIVE if text is None else fingerprint(text)
