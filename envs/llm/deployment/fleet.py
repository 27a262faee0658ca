"""Fleets: groups of GPUs, perhaps of several kinds, and the memory behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from archgym.envs.llm.data.cluster import Cluster, cluster_names, load_cluster
from archgym.envs.llm.data.fields import LARGEST, is_number, spelled_out
from archgym.errors import InvalidValueError, UnknownNameError

__all__ = ["FLEETS", "Fleet", "Group", "load_fleet"]

_KEYS: Final = ("groups", "host_gib", "pool_gib", "pool_gb_per_s")
_GROUP_KEYS: Final = ("cluster", "gpus", "label")
_MAX_GPUS: Final = 1024
_HOST_GIB: Final = 128.0
"""Memory of the host that a GPU may use; an assumption: half of the 2 TiB of a DGX H100 by GPU."""


@dataclass(frozen=True)
class Group:
    """GPUs of one kind.

    Attributes:
        label: name of the kind in designs.
        cluster: chips and links.
        gpus: how many there are.
    """

    label: str
    cluster: Cluster
    gpus: int


@dataclass(frozen=True)
class Fleet:
    """The GPUs among which a deployment chooses.

    Attributes:
        name: label in tables and datasets.
        groups: one of each kind.
        host_gib: memory of the host by GPU, 2^30 bytes.
        pool_gib: memory by GPU of a pool that all GPUs reach, 2^30 bytes; 0 without one.
        pool_gb_per_s: bandwidth of a GPU to the pool, one way, 1e9 bytes a second.
    """

    name: str
    groups: tuple[Group, ...]
    host_gib: float = _HOST_GIB
    pool_gib: float = 0.0
    pool_gb_per_s: float = 0.0

    @property
    def clusters(self) -> dict[str, Cluster]:
        """Chips and links of each kind, by label."""
        return {group.label: group.cluster for group in self.groups}

    @property
    def labels(self) -> list[str]:
        """Names of the kinds."""
        return [group.label for group in self.groups]

    @property
    def gpus(self) -> int:
        """GPUs of the largest group."""
        return max(group.gpus for group in self.groups)

    def figures(self) -> dict[str, Any]:
        """What metrics depend on: all but names and prose."""
        prose = ("name", "doc", "source", "base", "chip")
        groups = [
            {
                "label": group.label,
                "gpus": group.gpus,
                "cluster": {k: v for k, v in asdict(group.cluster).items() if k not in prose},
                "chip": {k: v for k, v in asdict(group.cluster.device).items() if k not in prose},
                # An engine's speed on a changed chip is that on the chip that it changes.
                **({"base": base} if (base := group.cluster.device.base) else {}),
            }
            for group in self.groups
        ]
        return {
            "groups": groups,
            "host_gib": self.host_gib,
            "pool_gib": self.pool_gib,
            "pool_gb_per_s": self.pool_gb_per_s,
        }


FLEETS: Final[Mapping[str, Mapping[str, Any]]] = {
    "a100_4": {"dgx_a100": 4},
    "a100_8": {"dgx_a100": 8},
    "h100_8": {"dgx_h100": 8},
    "h100_16": {"dgx_h100": 16},
    "h200_8": {"dgx_h200": 8},
    "b200_8": {"dgx_b200": 8},
    "a100_16_h100_8": {"dgx_a100": 16, "dgx_h100": 8},
    "h100_8_pooled": {"groups": {"dgx_h100": 8}, "pool_gib": 512, "pool_gb_per_s": 450},
}
"""Fleets that ship. The pool of the last one is an assumption: a GPU reaches it as fast as its
neighbours by NVLink."""


def load_fleet(spec: str | Mapping[str, Any]) -> Fleet:
    """A fleet by name, or from a mapping.

    >>> load_fleet({"dgx_a100": 16, "dgx_h100": 8}).labels
    ['a100', 'h100']

    Args:
        spec: a name of :data:`FLEETS`; a mapping from clusters to numbers of their GPUs; or a
            mapping with ``groups`` (such a mapping, or a list of mappings with ``cluster``,
            ``gpus`` and perhaps ``label``), and perhaps ``host_gib``, ``pool_gib`` and
            ``pool_gb_per_s``.

    Raises:
        UnknownNameError, InvalidValueError: naming what is not possible.
    """
    return _read(*spelled_out("fleet", spec, FLEETS))


def _read(name: str, spec: Mapping[str, Any]) -> Fleet:
    if not any(key in _KEYS for key in spec):
        spec = {"groups": spec}
    for key in spec:
        if key not in _KEYS:
            raise UnknownNameError("key", key, _KEYS, "fleet")
    groups = _groups(spec.get("groups"))
    label = name or " and ".join(f"{group.gpus} {group.label}" for group in groups)
    figures = {key: _figure(key, spec[key]) for key in _KEYS[1:] if key in spec}
    if bool(figures.get("pool_gib")) != bool(figures.get("pool_gb_per_s")):
        raise InvalidValueError("fleet: a pool has both pool_gib and pool_gb_per_s, above 0")
    return Fleet(label, groups, **figures)


def _groups(given: Any) -> tuple[Group, ...]:
    if isinstance(given, Mapping):
        given = [{"cluster": cluster, "gpus": gpus} for cluster, gpus in given.items()]
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise InvalidValueError(
            f"fleet: groups is {given!r:.80}; it must be a mapping from clusters "
            f"({', '.join(cluster_names())}) to numbers of GPUs, or a list of mappings with "
            f"{', '.join(_GROUP_KEYS)}"
        )
    found: list[Group] = []
    for i, one in enumerate(given):
        where = f"fleet: groups[{i}]"
        if not isinstance(one, Mapping) or not {"cluster", "gpus"} <= set(one):
            raise InvalidValueError(
                f"{where} is {one!r:.80}; it must be a mapping with cluster and gpus"
            )
        for key in one:
            if key not in _GROUP_KEYS:
                raise UnknownNameError("key", key, _GROUP_KEYS, where)
        gpus = one["gpus"]
        if isinstance(gpus, bool) or not isinstance(gpus, int) or not 1 <= gpus <= _MAX_GPUS:
            raise InvalidValueError(
                f"{where}: gpus is {gpus!r:.80}; it must be a whole number from 1 to {_MAX_GPUS:,}"
            )
        cluster = load_cluster(one["cluster"])
        label = str(one.get("label", cluster.device.name))
        if label in (group.label for group in found):
            raise InvalidValueError(f"{where}: there is a group {label!r} already; give it a label")
        found.append(Group(label, cluster, gpus))
    return tuple(found)


def _figure(key: str, value: Any) -> float:
    if not is_number(value) or value < 0:
        raise InvalidValueError(
            f"fleet: {key} is {value!r:.80}; it must be a number from 0 to {LARGEST:g}"
        )
    return float(value)
