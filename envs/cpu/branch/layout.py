"""Shared by the compiled modules: codes, positions in the tables, and the tables of a predictor."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

# Kinds of instructions.
DIRECT_JUMP, INDIRECT, CONDITIONAL, DIRECT_CALL, INDIRECT_CALL, RETURN, OTHER, NOT_BRANCH = range(8)
N_KINDS = 7
KINDS = (
    "direct_jump", "indirect", "conditional", "direct_call", "indirect_call", "return", "other",
)  # fmt: skip

# Predictors of the direction.
BIMODAL, GSHARE, PERCEPTRON, HASHED_PERCEPTRON, TAGE = range(5)
PREDICTORS = ("bimodal", "gshare", "perceptron", "hashed_perceptron", "tage")

# What happened: predicted, or when the front end learns that it was not.
PREDICTED, WRONG_UNTIL_DECODE, WRONG_UNTIL_EXECUTE = range(3)

# Entries of the vector `s`. Settings:
(
    C_KIND, C_ENTRIES, C_PRIME, C_HISTORY, C_THETA, C_TAG_BITS, C_LOG2, C_TABLES, C_FOLDS, C_ROW,
    C_SETS, C_WAYS, C_INDIRECT, C_RETURNS,
) = range(14)  # fmt: skip
# State: history of the branches, the perceptron's speculative history, what the last prediction
# left for the update, and the adaptive numbers of the hashed perceptron and of TAGE.
(
    S_HISTORY, S_SPECULATIVE, S_INDEX, S_OUTPUT, S_THETA, S_TRAINED, S_HEAD, S_PROVIDER,
    S_ALTERNATE, S_PROVIDED, S_ALTERNATIVE, S_FRESH, S_USE_ALTERNATE, S_RANDOM,
    S_CONDITIONALS, S_CLOCK, S_DIRECTIONS, S_CALLS, S_DEPTH,
) = range(14, 33)  # fmt: skip
N_SCALARS = 33

# What an entry of the branch target buffer says of its branch.
ALWAYS_TAKEN, BY_HISTORY, BY_RETURN_STACK, BY_DIRECTION = range(4)


# Room for the largest unit.
MAX_TABLES = 17
MAX_COUNTERS = 1 << 22
MAX_TARGETS = 1 << 18
MAX_CALLS = 1 << 12
# Longest history, branches, that any predictor keeps; a power of two.
RING = 1 << 10
CALL_SIZES = 1 << 10

# The tables of a unit are one record of this type: compiled functions take it as one pointer. What
# a unit does not use of it is never written, and takes no memory. Counters of table t begin at
# t * s[C_ROW], targets of set n at n * s[C_WAYS].
_WORD = np.int64
UNIT = np.dtype(
    [
        ("s", _WORD, N_SCALARS),  # settings and scalars
        ("branches", _WORD, N_KINDS),  # branches of each kind
        ("wrong", _WORD, N_KINDS),  # mispredicted branches of each kind
        ("lengths", _WORD, MAX_TABLES),  # branches in the history of each table
        ("folds", _WORD, (MAX_TABLES, 3)),  # folded histories: index, tag, tag again
        ("widths", _WORD, 3),  # bits of each folded history
        ("indices", _WORD, MAX_TABLES),  # where each table was looked up last
        ("looked_up", np.int32, MAX_TABLES),  # TAGE's tag at the last look-up
        ("outcomes", np.int8, RING),  # the last outcomes of branches, a ring
        ("call_sizes", _WORD, CALL_SIZES),  # bytes of a call instruction by its address
        ("returns", _WORD, MAX_CALLS),  # addresses of the last calls, a ring
        ("indirect", _WORD, MAX_TARGETS),  # targets of indirect branches
        ("weights", np.int16, MAX_COUNTERS),  # counters or weights of the direction predictor
        ("tags", np.int32, MAX_COUNTERS),  # TAGE's tags; -1: empty
        ("useful", np.int8, MAX_COUNTERS),  # TAGE's useful counters
        # The branch target buffer: words of instructions (-1: empty), targets, kinds of branches,
        # and when used last (0: never).
        ("target_tags", _WORD, MAX_TARGETS),
        ("targets", _WORD, MAX_TARGETS),
        ("target_kinds", np.int8, MAX_TARGETS),
        ("target_used", _WORD, MAX_TARGETS),
    ],
    align=True,
)
Unit = Any
"""A record of :data:`UNIT`."""
