"""The design spaces of the processor environment."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from archgym.envs.cpu.branch.layout import PREDICTORS
from archgym.envs.cpu.core_space import CORE_BASELINE, CORE_PARAMETERS, core_parameters
from archgym.envs.cpu.hierarchy.config import (
    ALL_KINDS,
    INCLUSIONS,
    LEVELS,
    POLICIES,
    PREFETCHERS,
    CacheLevel,
    HierarchyConfig,
    PrefetcherConfig,
)
from archgym.envs.cpu.hierarchy.layout import STORE, WRITEBACK
from archgym.envs.cpu.hierarchy.translation import TranslationConfig
from archgym.errors import DesignError, InvalidValueError, UnknownNameError
from archgym.space import Categorical, DesignSpace, Ordinal, Parameter, Rule, param

__all__ = [
    "BASELINE",
    "as_champsim",
    "baseline_in",
    "baseline_values",
    "check_parameters",
    "hierarchy_of",
    "prefetchers_of",
    "spaces",
    "translation_of",
]

KIB: Final = 1024
_POLICIES: Final = ("lru", "srrip", "drrip", "random", "ship")
_PREFETCHERS: Final = ("none", "next_line", "ip_stride", "stream", "spp")

BASELINE: Final[dict[str, Any]] = {
    "line_bytes": 64,
    "l1i_kib": 32,
    "l1i_ways": 8,
    "l1i_replacement": "lru",
    "l1d_kib": 32,
    "l1d_ways": 8,
    "l1d_replacement": "lru",
    "l2_kib": 256,
    "l2_ways": 4,
    "l2_replacement": "lru",
    "llc_kib": 2048,
    "llc_ways": 16,
    "llc_replacement": "lru",
    "llc_inclusion": "inclusive",
    "l1d_prefetcher": "none",
    "l2_prefetcher": "none",
    "itlb_entries": 64,
    "dtlb_entries": 64,
    "stlb_entries": 1536,
    **CORE_BASELINE,
}
"""One core of Intel's Skylake client of 2015: 32 + 256 KiB and 2 MiB (Optimization Reference
Manual, "Cache Parameters of the Skylake Microarchitecture"), with ChampSim's translation buffers
and without prefetchers."""

_DEGREES: Final = {"degree": (1, 2, 4, 8), "distance": (1, 2, 4, 8)}
_DEFAULT_DEGREE: Final = {"degree": 2, "distance": 1}
_TRIES: Final = 256
"""Designs of a user's space of which one shall be possible."""
_KINDS: Final = {
    "_replacement": POLICIES,
    "_inclusion": INCLUSIONS,
    "_prefetcher": PREFETCHERS,
    "branch_predictor": PREDICTORS,
}
"""What the parameters whose names end so may be."""
_BUFFERS: Final = ("itlb_entries", "dtlb_entries", "stlb_entries")


def spaces() -> dict[str, DesignSpace]:
    """Every space by name, the default one as ``default`` too."""
    caches = _cache_parameters()
    memory = [*caches, *_memory_parameters()]
    return {
        "default": DesignSpace(caches, rules=_rules()),
        "caches": DesignSpace(caches, rules=_rules()),
        "memory": DesignSpace(memory, rules=_rules()),
        "core": DesignSpace([*_core_caches(memory), *core_parameters()], rules=_rules()),
    }


def _core_caches(memory: list[Parameter]) -> list[Parameter]:
    """The caches of the core: lines of 64 bytes, and always a second level."""
    found: list[Parameter] = []
    for parameter in memory:
        if parameter.name == "l2_kib":
            sizes = (64, 128, 256, 512, 1024)
            found += [
                Ordinal("l2_kib", sizes, unit="KiB", doc="capacity of the second level"),
                Ordinal("l2_ways", (4, 8, 16), doc="associativity of the second level"),
                Categorical("l2_replacement", _POLICIES, doc="replacement in the second level"),
            ]
        elif parameter.name not in ("line_bytes", "l2_ways", "l2_replacement"):
            found.append(parameter)
    return found


def _cache_parameters() -> list[Parameter]:
    def level(
        name: str,
        what: str,
        sizes: tuple[int, ...],
        ways: tuple[int, ...],
        policies: tuple[str, ...],
    ) -> list[Parameter]:
        return [
            Ordinal(f"{name}_kib", sizes, unit="KiB", doc=f"capacity of {what}"),
            Ordinal(f"{name}_ways", ways, doc=f"associativity of {what}"),
            Categorical(f"{name}_replacement", policies, doc=f"replacement in {what}"),
        ]

    first = ("lru", "srrip", "random")
    return [
        Ordinal("line_bytes", (32, 64, 128), unit="B", doc="size of a line of every level"),
        *level("l1i", "the first level of instructions", (8, 16, 32, 64), (1, 2, 4, 8), first),
        *level("l1d", "the first level of data", (8, 16, 32, 64), (1, 2, 4, 8), _POLICIES),
        Ordinal(
            "l2_kib",
            (0, 64, 128, 256, 512, 1024),
            unit="KiB",
            doc="capacity of the second level; 0: there is none",
        ),
        Ordinal(
            "l2_ways", (4, 8, 16), doc="associativity of the second level", when=param("l2_kib") > 0
        ),
        Categorical(
            "l2_replacement",
            _POLICIES,
            doc="replacement in the second level",
            when=param("l2_kib") > 0,
        ),
        *level("llc", "the last level", (256, 512, 1024, 2048, 4096, 8192), (4, 8, 16), _POLICIES),
        Categorical(
            "llc_inclusion",
            ("non_inclusive", "inclusive", "exclusive"),
            doc="what the last level holds of the lines above it",
        ),
    ]


def _memory_parameters() -> list[Parameter]:
    found: list[Parameter] = []
    for name, what in (("l1d", "the first level of data"), ("l2", "the level below it")):
        kind = f"{name}_prefetcher"
        found.append(Categorical(kind, _PREFETCHERS, doc=f"prefetcher of {what}"))
        for setting, values in _DEGREES.items():
            doc = {
                "degree": f"lines that the prefetcher of {what} asks for at once; spp: steps",
                "distance": f"how far ahead the prefetcher of {what} begins, lines or strides",
            }[setting]
            when = param(kind) != "none"
            if setting == "distance":
                when = when & (param(kind) != "spp")
            found.append(Ordinal(f"{name}_prefetch_{setting}", values, doc=doc, when=when))
    return [
        *found,
        Ordinal("itlb_entries", (16, 32, 64, 128), doc="translation buffer of instructions"),
        Ordinal("dtlb_entries", (16, 32, 64, 128), doc="translation buffer of data"),
        Ordinal("stlb_entries", (384, 768, 1536, 3072), doc="second-level translation buffer"),
    ]


def _rules() -> list[Rule]:
    return [
        Rule(
            "second_above_last",
            param("l2_kib") < param("llc_kib"),
            doc="the second level is smaller than the last one",
        )
    ]


def baseline_in(space: DesignSpace, counting: str) -> dict[str, Any]:
    """The baseline, or, where a user's space does not have it, some design."""
    values = baseline_values(counting)
    wanted = {
        name: values[name]
        for name in space.names
        if name in values and (values["l2_kib"] or name == "l2_kib" or name[:3] != "l2_")
    }
    with contextlib.suppress(UnknownNameError, DesignError):
        space.codes(wanted)
        return wanted
    drawn = [dict(design) for design in space.sample(_TRIES, np.random.default_rng(0))]
    return next((design for design in drawn if _is_possible(design, values)), drawn[0])


def baseline_values(counting: str) -> Mapping[str, Any]:
    """Values of the parameters that a space does not have; those of the baseline where it does.

    Args:
        counting: of :class:`archgym.envs.cpu.environment.CPUEnvironment`; cachegrind has no second
            level, and a last one that is not inclusive.
    """
    if counting == "cachegrind":
        return {**BASELINE, "l2_kib": 0, "llc_inclusion": "non_inclusive"}
    return BASELINE


def _is_possible(design: Mapping[str, Any], baseline: Mapping[str, Any]) -> bool:
    """Whether the numbers of a design fit together, which a user's space may not assure."""
    try:
        hierarchy_of(design, baseline)
    except InvalidValueError:
        return False
    return True


def check_parameters(space: DesignSpace) -> None:
    """Refuses the parameters of a user's space that the model would not read.

    Args:
        space: of the user.

    Raises:
        UnknownNameError: for one that is no parameter of the model, and for a policy or a
            prefetcher that the model does not have.
        InvalidValueError: for one that acts only together with another one that is missing.
    """
    known = {*BASELINE, *CORE_PARAMETERS, *(f"{level}_line_bytes" for level in LEVELS)}
    known |= {f"{level}_prefetch_{one}" for level in ("l1d", "l2") for one in _DEGREES}
    needs: dict[str, tuple[str, ...]] = dict.fromkeys(CORE_PARAMETERS, ("rob_size",))
    needs |= dict.fromkeys(_BUFFERS, _BUFFERS)
    for level in ("l1d", "l2"):
        for one in _DEGREES:
            needs[f"{level}_prefetch_{one}"] = (f"{level}_prefetcher",)
    names = space.names
    for name in names:
        if name not in known:
            raise UnknownNameError("parameter of the space", name, known)
        for ending, kinds in _KINDS.items():
            if name.endswith(ending):
                _check_kinds(space[name], kinds)
        if missing := [other for other in needs.get(name, ()) if other not in names]:
            raise InvalidValueError(
                f"space: the parameter {name!r} has no effect without {' and '.join(missing)}: "
                "add what is missing, with one value if it shall not vary"
            )


def _check_kinds(parameter: Parameter, known: Collection[str]) -> None:
    for value in parameter.levels if isinstance(parameter, Categorical | Ordinal) else ():
        if value not in known:
            raise UnknownNameError("value", value, known, f"space: {parameter.name}")


def hierarchy_of(
    design: Mapping[str, Any], baseline: Mapping[str, Any] = BASELINE
) -> HierarchyConfig:
    """The caches that a design describes.

    A user's space may have ``l1i_line_bytes`` and likewise for other levels, each at least as long
    as that of the level above.

    Args:
        design: values of parameters.
        baseline: values of those that the design lacks.

    Raises:
        InvalidValueError: if the numbers of a level do not fit together; the message names its
            parameters.
    """
    values = {**baseline, **design}

    def level(name: str, inclusion: str = "non_inclusive") -> CacheLevel:
        line = f"{name}_line_bytes" if f"{name}_line_bytes" in values else "line_bytes"
        size, ways = f"{name}_kib", f"{name}_ways"
        try:
            return CacheLevel(
                round(values[size] * KIB),
                int(values[ways]),
                int(values[line]),
                str(values[f"{name}_replacement"]),
                inclusion,
            )
        except InvalidValueError as error:
            given = ", ".join(f"{one}={values[one]}" for one in (size, ways, line))
            raise InvalidValueError(f"{given}: {error}") from error

    return HierarchyConfig(
        level("l1i"),
        level("l1d"),
        level("l2") if values["l2_kib"] else None,
        level("llc", str(values["llc_inclusion"])),
    )


def as_champsim(config: HierarchyConfig) -> HierarchyConfig:
    """The caches, with the hits that ChampSim's replacement policies count as a use."""

    def one(level: CacheLevel) -> CacheLevel:
        everything = level.replacement in ("srrip", "random")
        kinds = ALL_KINDS if everything else ALL_KINDS & ~(1 << STORE | 1 << WRITEBACK)
        return replace(level, refreshing=kinds)

    l2 = None if config.l2 is None else one(config.l2)
    return replace(config, l1i=one(config.l1i), l1d=one(config.l1d), l2=l2, llc=one(config.llc))


def prefetchers_of(design: Mapping[str, Any]) -> tuple[PrefetcherConfig, PrefetcherConfig]:
    """The prefetchers of the first level of data, and of the level below it."""

    def one(name: str) -> PrefetcherConfig:
        kind = str(design.get(f"{name}_prefetcher", "none"))
        given = {
            setting: int(design.get(f"{name}_prefetch_{setting}", default))
            for setting, default in _DEFAULT_DEGREE.items()
        }
        return PrefetcherConfig() if kind == "none" else PrefetcherConfig(kind, **given)

    return one("l1d"), one("l2")


def translation_of(design: Mapping[str, Any]) -> TranslationConfig | None:
    """The translation buffers; ``None`` in a space without them."""
    if "itlb_entries" not in design:
        return None
    return TranslationConfig(
        itlb_entries=int(design["itlb_entries"]),
        dtlb_entries=int(design["dtlb_entries"]),
        stlb_entries=int(design["stlb_entries"]),
    )
