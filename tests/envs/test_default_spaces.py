"""The space that everybody searches stays as it is while the version of its environment does."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

import archgym
from archgym.registry import environment_class, environment_names
from archgym.space import Categorical, DesignSpace, Integer

# Taken before any test runs: tests of other modules register environments of their own.
ENVIRONMENTS = environment_names()
SPACES = {
    "Accelerator-v0": "version 2: fc40d267629823f2",
    "CPU-v0": "version 0: 9dec8817e60986d6",
    "Conformance-v0": "version 1: 849c00b75e75ab3f",
    "DRAM-v0": "version 3: d4323606456aca08",
    "FPGA-v0": "version 4: 0008d76ab383f8ea",
    "GPUKernel-v0": "version 5: 27fe470e306e633f",
    "LLMDevice-v0": "version 1: da4f6188d40e47cd",
    "LLMServing-v0": "version 2: f3f8db1aedb82b7a",
    "LLMTraining-v0": "version 6: 4986206d55044406",
    "NAS-v0": "version 2: 22f101ba2822c576",
    "SoC-v0": "version 0: e3cc3f3bcad99d5f",
    "TPE-v0": "version 5: 2a5e4262f913cfe3",
}
"""Version of each environment, and digest of its default space."""


def digest_of(space: DesignSpace) -> str:
    """Digest of the designs that a space offers; texts that describe them do not count."""

    def bare(data: Any) -> Any:
        if isinstance(data, dict):
            return {key: bare(value) for key, value in data.items() if key not in ("doc", "group")}
        return [bare(one) for one in data] if isinstance(data, list) else data

    parameters = [parameter.to_json() for parameter in space.parameters]  # without excluded values
    rules = [rule.expression.to_json() for rule in space.rules]
    text = json.dumps(bare([parameters, rules, dict(space.fixed)]), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_another_default_space_has_another_version(name: str) -> None:
    version = environment_class(name).version
    now = f"version {version}: {digest_of(archgym.make(name).design_space)}"
    before = SPACES.get(name, "")
    changed = before.partition(":")[0] == f"version {version}" and before != now
    assert not changed, (
        f"the default space of {name} is no longer that of version {version}. Keep new values "
        "and parameters out of it (CONTRIBUTING.md, 'Change an environment'), or raise the version"
    )
    assert before == now, f'note the new version in SPACES: "{name}": "{now}"'


def test_only_what_is_offered_counts() -> None:
    size, mode = Integer("size", 1, 4), Categorical("mode", ["read", "write"])
    space = DesignSpace([size, mode])
    described = DesignSpace([Integer("size", 1, 4, doc="its size"), mode])
    longer = Categorical("mode", ["read", "write", "both"])
    excluded = DesignSpace([size, longer], excluded={"mode": ["both"]})
    assert digest_of(space) == digest_of(described) == digest_of(excluded)
    assert digest_of(space) != digest_of(DesignSpace([size, longer]))
