"""Random legal processing elements, chosen without the design space."""

from __future__ import annotations

from typing import Any

import numpy as np

from archgym.envs.tpe.microarchitecture.pe import PE

SPATIAL = ("booth", "ent", "csd", "radix2")
TEMPORAL = ("booth", "ent", "csd", "serial_twos", "serial_sign_magnitude")
IN_PE = ("booth", "serial_twos")
ADDERS = ("auto", "ripple", "brent_kung", "kogge_stone", "sklansky")


def legal_pes(n: int, seed: int, widths: tuple[int, ...] = (4, 8, 16)) -> list[PE]:
    """Different PEs, as hardware."""
    rng = np.random.default_rng(seed)
    found: dict[PE, None] = {}
    while len(found) < n:
        found[random_pe(rng, widths)] = None
    return list(found)


def random_pe(rng: np.random.Generator, widths: tuple[int, ...]) -> PE:
    def pick(*options: Any) -> Any:
        return options[rng.integers(len(options))]

    temporal = rng.random() < 0.4
    wa, wb = int(rng.choice(widths)), int(rng.choice(widths))
    encoding: Any = pick(*(TEMPORAL if temporal else SPATIAL))
    hoisted = rng.random() < 0.45
    accumulator: Any = (
        pick("carry_save")
        if hoisted
        else pick(*(["merged"] if temporal else ["separate", "merged"]), "carry_save")
    )
    place: Any = "pe" if encoding in (*IN_PE, "radix2") and rng.random() < 0.6 else "edge"
    if encoding == "radix2":
        place = "pe"
    lanes = int(pick(1, 2, 4, 8)) if temporal and hoisted else 1
    reduction = int(pick(1, 1, 2, 4)) if not temporal else 1
    extra = int(rng.integers(0, 13))
    minimum = wb + 2 + 3 if hoisted else wa + wb + (lanes * reduction - 1).bit_length()
    depth = int(pick(1, 1, 2, 3))
    if depth == 3 and accumulator != "separate" and (place != "pe" or encoding == "radix2"):
        depth = 2
    return PE(
        wa,
        wb,
        minimum + extra,
        encoding=encoding,
        encoder_place=place,
        bit_weights=pick("temporal_dense", "temporal_sparse") if temporal else "spatial",
        shift_place="simd" if hoisted else "pe",
        accumulator=accumulator,
        final_adder_place="simd" if accumulator == "carry_save" else "pe",
        final_adder=pick(*ADDERS),
        compressor=pick("dadda", "dadda", "wallace", "4to2", "linear"),
        pipeline_depth=depth,
        lanes=lanes,
        reduction=reduction,
    ).hardware()
