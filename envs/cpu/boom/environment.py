"""The problem of the ICCAD'22 contest on the Berkeley out-of-order machine (BOOM)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from archgym.environment.environment import Environment
from archgym.errors import NotCoveredError
from archgym.problem.metrics import Metric
from archgym.problem.simulator import SimulationResult
from archgym.space import Categorical, Designs, DesignSpace, Ordinal, Rule, param

__all__ = ["TABLE", "BoomContest", "components_of"]

TABLE: Final = "boom-contest"
_ROWS: Final = 4
"""Variants that a component has at most at one width."""

# The contest's platform (iccad-contest 0.1.3, design-space.xlsx, Apache License 2.0): what each
# variant of a component holds, by width of decoding; components in the order of its columns, and
# the variants of those that have sizes from small to large.
_FETCH: Final = {1: (4,), 2: (4,), 3: (8,), 4: (8,), 5: (8,)}
_ISSUE: Final = {
    1: ((1, 1, 6) * 3, (1, 1, 8) * 3, (1, 1, 10, 1, 1, 12, 1, 1, 12)),
    2: (
        (2, 1, 12, 2, 2, 20, 2, 1, 16),
        (2, 2, 12, 2, 2, 20, 2, 2, 16),
        (2, 2, 14, 2, 2, 24, 2, 2, 20),
    ),
    3: (
        (3, 1, 16, 3, 3, 32, 3, 1, 24),
        (3, 2, 16, 3, 3, 32, 3, 2, 24),
        (3, 2, 20, 3, 3, 36, 3, 3, 28),
    ),
    4: (
        (4, 2, 22, 4, 4, 36, 4, 2, 28),
        (4, 2, 24, 4, 4, 40, 4, 2, 32),
        (4, 2, 28, 4, 4, 44, 4, 4, 36),
    ),
    5: (
        (5, 2, 24, 5, 5, 40, 5, 2, 32),
        (5, 2, 26, 5, 4, 44, 5, 4, 36),
        (5, 2, 28, 5, 5, 48, 5, 5, 40),
    ),
}
_FRONT: Final = {
    1: ((6, 6, 14), (8, 8, 16), (10, 12, 20)),
    2: ((10, 14, 30), (12, 16, 32), (14, 20, 36)),
    3: ((14, 21, 30), (16, 24, 32), (18, 30, 36)),
    4: ((20, 32, 40), (22, 36, 44), (24, 40, 48)),
    5: ((20, 35, 40), (24, 40, 48), (26, 45, 50)),
}
_REORDER: Final = {
    1: ((30,), (32,), (34,), (36,)),
    2: ((60,), (64,), (72,)),
    3: ((90,), (96,), (108,)),
    4: ((128,), (132,), (136,)),
    5: ((120,), (130,), (140,)),
}
_REGISTERS: Final = {
    1: ((42, 38), (52, 48), (62, 58)),
    2: ((70, 54), (80, 64), (90, 74)),
    3: ((90, 86), (100, 96), (110, 106)),
    4: ((118, 118), (128, 128), (138, 138)),
    5: ((128, 128), (138, 138), (146, 146)),
}
_LOAD_STORE: Final = {
    1: ((6, 6), (8, 8), (12, 12)),
    2: ((12, 12), (16, 16), (20, 20)),
    3: ((20, 20), (24, 24), (28, 28)),
    4: ((28, 28), (32, 32), (36, 36)),
    5: ((28, 28), (32, 32), (36, 36)),
}
_SMALL_ICACHES: Final = ((64, 4, 1, 32), (32, 8, 1, 32), (32, 4, 1, 16), (64, 1, 1, 16))
_LARGE_ICACHES: Final = ((64, 8, 1, 32), (64, 8, 2, 16), (64, 8, 2, 32))
_ICACHE: Final = {
    1: _SMALL_ICACHES,
    2: _SMALL_ICACHES,
    3: _LARGE_ICACHES,
    4: _LARGE_ICACHES,
    5: _LARGE_ICACHES,
}
_SMALL_DCACHES: Final = (
    (64, 4, 0, 2, 1, 8),
    (64, 4, 0, 2, 1, 32),
    (64, 4, 1, 2, 1, 8),
    (64, 4, 1, 2, 1, 32),
)
_LARGE_DCACHES: Final = ((64, 8, 0, 8, 2, 32), (64, 8, 1, 8, 2, 32), (64, 8, 1, 8, 1, 32))
_DCACHE: Final = {
    1: _SMALL_DCACHES,
    2: _SMALL_DCACHES,
    3: ((64, 2, 0, 4, 1, 32), (64, 4, 1, 4, 1, 32), (64, 4, 1, 8, 1, 32)),
    4: _LARGE_DCACHES,
    5: _LARGE_DCACHES,
}
_SIZED: Final[dict[str, tuple[Mapping[int, tuple[tuple[int, ...], ...]], str]]] = {
    "issue_units": (_ISSUE, "issue units: widths and entries for memory, integers and floats"),
    "front_end": (_FRONT, "branch tags, fetch buffer and fetch target queue"),
    "reorder_buffer": (_REORDER, "reorder buffer; step 4 at width 1 only"),
    "registers": (_REGISTERS, "physical registers for integers and floats"),
    "load_store": (_LOAD_STORE, "load and store queue"),
}
_CACHES: Final[dict[str, tuple[Mapping[int, tuple[tuple[int, ...], ...]], str]]] = {
    "icache": (_ICACHE, "cache and translation of instructions; variant 4 up to width 2"),
    "dcache": (_DCACHE, "cache and translation of data; variant 4 up to width 2"),
}


def _space() -> DesignSpace:
    sized = [
        Ordinal(
            name,
            tuple(range(1, max(len(variants) for variants in table.values()) + 1)),
            doc=f"step of size among those of the width: {doc}",
        )
        for name, (table, doc) in _SIZED.items()
    ]
    names = tuple(str(number) for number in range(1, _ROWS + 1))
    caches = [Categorical(name, names, doc=doc) for name, (_, doc) in _CACHES.items()]
    width = param("decode_width")
    return DesignSpace(
        [
            Ordinal("decode_width", (1, 2, 3, 4, 5), doc="instructions decoded in a cycle"),
            *sized,
            *caches,
        ],
        rules=[
            Rule(
                "reorder_buffer_step",
                (width == 1) | (param("reorder_buffer") <= 3),
                doc="four sizes of the reorder buffer at width 1, else three",
            ),
            *(
                Rule(
                    f"{name}_variant",
                    (width <= 2) | (param(name) != "4"),
                    doc=f"four variants of {name} up to width 2, else three",
                )
                for name in _CACHES
            ),
        ],
    )


def components_of(design: Mapping[str, Any]) -> tuple[int, ...]:
    """The 29 numbers of a design in the order of the contest's table.

    Args:
        design: of :class:`BoomContest`.
    """
    width = int(design["decode_width"])
    found = [*_FETCH[width], width]
    for name, (table, _) in {**_SIZED, **_CACHES}.items():
        found += table[width][int(design[name]) - 1]
    return tuple(found)


class BoomContest(Environment):
    """Search the designs of a BOOM core that the ICCAD'22 contest's platform ships.

    Performance, power, area and the time of the design flow of 15,633 designs, in the table
    ``boom-contest``. The platform calls this data set a dummy that helps to get familiar with it;
    the contest was judged with other figures. So it compares agents, and says nothing about BOOM.

    >>> import archgym
    >>> env = archgym.make("archgym.envs.cpu.boom:BoomContest", simulator="tabular:boom-contest")
    >>> len(env.objective.goals), int(env.design_space.canonical_cardinality)
    (3, 15633)
    """

    design_space = _space()
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("ipc_rate", "", "maximize", "instructions in a cycle"),
        Metric("power_w", "W", "minimize", "power"),
        Metric("area_um2", "um2", "minimize", "area"),
        Metric(
            "flow_s",
            "s",
            "minimize",
            "time of the design flow for this design; the platform states no unit, seconds are "
            "assumed (1.5 to 14 hours)",
        ),
    )
    default_objective: ClassVar = {
        "maximize": "ipc_rate",
        "minimize": ["power_w", "area_um2"],
    }
    baseline: ClassVar[Mapping[str, Any]] = {
        "decode_width": 2,
        **dict.fromkeys(_SIZED, 2),
        **dict.fromkeys(_CACHES, "1"),
    }
    version: ClassVar = "iccad-contest 0.1.3"

    def simulate_batch(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Nothing but a table knows the figures."""
        missing = NotCoveredError(
            f"the figures are in a table only: give simulator='tabular:{TABLE}'"
        )
        return [(missing, 0.0) for _ in range(len(designs))]
