"""Counts the cells of a netlist that yosys elaborated; knows nothing of how blocks are built."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any


def elaborated_cells(netlist: str, top: str) -> Counter[str]:
    """Instances of each module below the top, adder bits (`add_bit`) and flip-flops.

    A module that holds nothing but instances and plain wires (an adder, say) is looked into; one
    with logic of its own is a leaf.
    """
    modules: dict[str, Any] = json.loads(netlist)["modules"]
    found: Counter[str] = Counter()
    stack = [(top, 1)]
    while stack:
        name, times = stack.pop()
        for cell in modules[name]["cells"].values():
            kind = cell["type"]
            if kind == "$add":
                found["add_bit"] += times * int(str(cell["parameters"]["Y_WIDTH"]), 2)
            elif kind == "$dff":
                found["register_bit"] += times * int(str(cell["parameters"]["WIDTH"]), 2)
            elif not kind.startswith("$"):
                inner = {c["type"] for c in modules[kind]["cells"].values()}
                leaf = not inner or any(t.startswith("$") and t != "$add" for t in inner)
                if leaf:
                    found[kind] += times
                else:
                    stack.append((kind, times))
    return found
