"""The 40 processing elements that calibrate a library; several hold each kind of cell and stage."""

from __future__ import annotations

from dataclasses import replace

from archgym.envs.tpe.microarchitecture.pe import PE
from archgym.envs.tpe.space.named import named_array

__all__ = ["calibration_set", "classic_pes"]


def calibration_set() -> tuple[PE, ...]:
    """At most 40 legal PEs, small ones first."""
    mac = PE(8, 8, 32)
    found = [
        PE(4, 4, 16, encoding="radix2"),
        PE(8, 8, 20),
        mac,
        PE(8, 8, 24, encoding="radix2"),
        PE(8, 8, 40, encoding="radix2"),
        PE(16, 16, 40),
        PE(16, 16, 48, encoding="radix2"),
        PE(4, 4, 16, accumulator="merged"),
        PE(8, 8, 32, accumulator="merged"),
        PE(16, 16, 40, accumulator="merged"),
        PE(8, 8, 32, encoding="radix2", accumulator="merged"),
        PE(8, 8, 32, accumulator="merged", final_adder="ripple"),
        PE(8, 8, 32, accumulator="merged", final_adder="kogge_stone"),
        PE(8, 8, 32, final_adder="brent_kung"),
        PE(16, 16, 48, final_adder="kogge_stone"),
        PE(8, 8, 32, pipeline_depth=3),
        PE(16, 16, 48, pipeline_depth=2),
        PE(8, 16, 40, encoder_place="edge", final_adder="ripple", pipeline_depth=2),
    ]
    kept = replace(mac, accumulator="carry_save", final_adder_place="simd")
    found += [
        kept,
        replace(kept, compressor="wallace"),
        replace(kept, compressor="4to2"),
        replace(kept, compressor="linear"),
        replace(kept, width_a=4, width_b=4, accumulator_width=16, encoder_place="edge"),
        replace(kept, width_a=16, width_b=16, accumulator_width=40, encoder_place="edge"),
        replace(kept, encoding="radix2", accumulator_width=24),
        replace(kept, reduction=2, pipeline_depth=2),
    ]
    narrow = replace(kept, shift_place="simd", encoder_place="edge")
    digit = replace(narrow, bit_weights="temporal_sparse", accumulator_width=26)
    found += [
        replace(digit, width_a=4, width_b=4, accumulator_width=16),
        replace(digit, lanes=2),
        replace(digit, encoding="serial_twos", width_b=16, lanes=8, accumulator_width=30),
        replace(digit, encoding="serial_twos", width_b=16, compressor="linear", lanes=2),
        replace(digit, encoder_place="pe", encoding="serial_twos"),
        replace(digit, encoder_place="pe", encoding="serial_twos", width_a=16),
        replace(digit, width_b=16, accumulator_width=30, pipeline_depth=2),
        replace(digit, shift_place="pe", accumulator_width=30, compressor="4to2"),
        replace(
            mac,
            encoding="ent",
            encoder_place="edge",
            bit_weights="temporal_dense",
            accumulator="merged",
            final_adder="sklansky",
        ),
        replace(kept, bit_weights="temporal_dense", encoder_place="pe"),
    ]
    classics = [pe for pe in classic_pes() if pe not in (mac.hardware(), kept.hardware())]
    return (*(pe.hardware() for pe in found), *classics)


def classic_pes() -> tuple[PE, ...]:
    """The textbook PE and the published optimisations of it, in the order of the paper."""
    names = ("systolic_os", "systolic_os/OPT1", "systolic_os/OPT2", "OPT3", "OPT4C", "OPT4E")
    return tuple(named_array(name).pe.hardware() for name in names)
