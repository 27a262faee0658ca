"""The small modules that every block is built of, one for each counted kind of cell."""

from __future__ import annotations

from collections.abc import Iterable

from archgym.envs.tpe.microarchitecture.adders import prefix_network
from archgym.envs.tpe.microarchitecture.datapath import Adder

__all__ = ["CELL_PORTS", "adder_module", "adder_name", "cell_modules"]

_BOOTH = (
    "high mid low",
    {"neg": "high", "two": "(high ^ mid) & ~(mid ^ low)", "one": "mid ^ low"},
)

#: Inputs, outputs and one Verilog expression for each output.
_CELLS: dict[str, tuple[str, dict[str, str]]] = {
    "full_adder": ("a b c", {"s": "a ^ b ^ c", "co": "(a & b) | (c & (a ^ b))"}),
    "full_adder_one": ("a b", {"s": "~(a ^ b)", "co": "a | b"}),
    "half_adder": ("a b", {"s": "a ^ b", "co": "a & b"}),
    "half_adder_one": ("a", {"s": "~a", "co": "a"}),
    # Digit code: `one` selects B, `two` selects 2B (never both), `neg` complements.
    "select_bit": ("neg two one b b_below", {"p": "((one & b) | (two & b_below)) ^ neg"}),
    "sign_bit": ("neg one b", {"p": "(one & b) ^ neg"}),
    "and_bit": ("a b", {"p": "a & b"}),
    "booth_encoder": _BOOTH,
    "stored_encoder": _BOOTH,
    "serial_encoder": ("bit top", {"neg": "bit & top", "one": "bit"}),
    "pending_digit": (
        "waits before",
        {"first": "waits & ~before", "left": "waits & before", "after": "before | waits"},
    ),
    "pick_bit": ("above chosen bit", {"out": "above | (chosen & bit)"}),
    "mux_bit": ("choose one zero", {"out": "choose ? one : zero"}),
    "magnitude_bit": ("sign bit", {"out": "sign ^ bit"}),
    "ent_digit": (
        "sign high low carry",
        {
            "carry_out": "high & (low | carry)",
            "neg": "sign ^ (high & (low ^ carry))",
            "two": "high & ~low & ~carry | ~high & low & carry",
            "one": "low ^ carry",
        },
    ),
    "csd_bit": (
        "next bit carry",
        {"carry_out": "(next & bit) | (carry & (next | bit))", "nonzero": "bit ^ carry"},
    ),
    "csd_digit": (
        "high_nonzero high_negative low_nonzero low_negative",
        {
            "neg": "high_nonzero ? high_negative : (low_nonzero & low_negative)",
            "two": "high_nonzero",
            "one": "low_nonzero",
        },
    ),
    "ripple_bit": ("a b c", {"s": "a ^ b ^ c", "co": "(a & b) | (c & (a ^ b))"}),
    "prefix_start": ("a b", {"g": "a & b", "p": "a ^ b"}),
    "prefix_cell": ("g p g_low p_low", {"g_out": "g | (p & g_low)", "p_out": "p & p_low"}),
    "prefix_carry": ("g p g_low", {"g_out": "g | (p & g_low)"}),
    "prefix_sum": ("p c", {"s": "p ^ c"}),
}

CELL_PORTS: dict[str, tuple[str, ...]] = {
    kind: (*inputs.split(), *outputs) for kind, (inputs, outputs) in _CELLS.items()
}
"""Port names of each cell, inputs first."""


def cell_modules(kinds: Iterable[str]) -> str:
    """The module of each kind, in alphabetical order."""
    return "".join(_cell(kind) for kind in sorted(set(kinds)))


def _cell(kind: str) -> str:
    inputs, outputs = _CELLS[kind]
    ports = [f"input {name}" for name in inputs.split()] + [f"output {name}" for name in outputs]
    body = "".join(f"  assign {name} = {value};\n" for name, value in outputs.items())
    return f"module {kind}({', '.join(ports)});\n{body}endmodule\n\n"


def adder_name(adder: Adder) -> str:
    """Name of the module of an adder."""
    return f"adder_{adder.form}_{adder.width}"


def adder_module(adder: Adder) -> tuple[str, set[str]]:
    """The module of an adder, and the kinds of cells that it is made of."""
    n = adder.width
    head = (
        f"module {adder_name(adder)}(input [{n - 1}:0] a, input [{n - 1}:0] b, "
        f"output [{n - 1}:0] s);\n"
    )
    if adder.form == "auto":
        return f"{head}  assign s = a + b;\nendmodule\n\n", set()
    if adder.form == "ripple":
        lines = [f"  wire [{n}:0] c;", "  assign c[0] = 1'b0;"]
        lines += [
            f"  ripple_bit bit_{i}(.a(a[{i}]), .b(b[{i}]), .c(c[{i}]), .s(s[{i}]), "
            f".co(c[{i + 1}]));"
            for i in range(n)
        ]
        return head + "\n".join(lines) + "\nendmodule\n\n", {"ripple_bit"}
    return head + "\n".join(_prefix_lines(adder)) + "\nendmodule\n\n", {
        "prefix_start",
        "prefix_cell",
        "prefix_carry",
        "prefix_sum",
    }


def _prefix_lines(adder: Adder) -> list[str]:
    n = adder.width
    nodes = prefix_network(adder.form, n)
    lines = [f"  wire [{n - 1}:0] g, p;"]
    if nodes:
        lines.append(f"  wire [{len(nodes) - 1}:0] gs, ps;")
    lines += [
        f"  prefix_start start_{i}(.a(a[{i}]), .b(b[{i}]), .g(g[{i}]), .p(p[{i}]));"
        for i in range(n)
    ]
    now = {i: (f"g[{i}]", f"p[{i}]") for i in range(n)}
    for k, node in enumerate(nodes):
        g, p = now[node.high]
        g_low, p_low = now[node.low]
        kind = "prefix_carry" if node.carry else "prefix_cell"
        rest = "" if node.carry else f", .p_low({p_low}), .p_out(ps[{k}])"
        lines.append(
            f"  {kind} node_{k}(.g({g}), .p({p}), .g_low({g_low}), .g_out(gs[{k}]){rest});"
        )
        now[node.high] = (f"gs[{k}]", f"ps[{k}]")
    lines.append("  assign s[0] = p[0];")
    lines += [
        f"  prefix_sum sum_{i}(.p(p[{i}]), .c({now[i - 1][0]}), .s(s[{i}]));" for i in range(1, n)
    ]
    return lines
