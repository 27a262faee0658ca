"""The 64 processing elements that calibrate a library.

Several of the first 40 hold each kind of cell and stage. The other 24 were found by optimal design
of experiments (A. Atkinson, A. Donev and R. Tobias, "Optimum Experimental Designs, with SAS", 2007,
chapter 10): with least squares on the terms of area and period, the mean variance of what is
predicted for random PEs of the design space follows from the terms of the PEs that are measured,
whatever the measurements are. Of 229 small random PEs, always the one was added that lowers these
two variances, relative to those of the first 40, most.
"""

from __future__ import annotations

from dataclasses import replace

from archgym.envs.tpe.microarchitecture.pe import PE
from archgym.envs.tpe.space.named import named_array

__all__ = ["calibration_set", "classic_pes"]


def calibration_set() -> tuple[PE, ...]:
    """64 legal PEs."""
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
    return (*(pe.hardware() for pe in found), *classics, *_designed())


def _designed() -> tuple[PE, ...]:
    """PEs that tell most about the terms that the others leave open."""
    mac = PE(8, 8, 32)
    kept = replace(mac, accumulator="carry_save", final_adder_place="simd")
    digit = replace(kept, shift_place="simd", bit_weights="temporal_dense")
    fed_digit = replace(digit, encoder_place="edge")
    found = (*_with_product_adder(mac), *_merged(mac), *_kept(kept), *_one_digit(digit, fed_digit))
    return tuple(pe.hardware() for pe in found)


def _with_product_adder(mac: PE) -> tuple[PE, ...]:
    fed, array = replace(mac, encoder_place="edge"), replace(mac, encoding="radix2")
    return (
        replace(
            array,
            width_b=16,
            accumulator_width=44,
            final_adder="brent_kung",
            compressor="4to2",
            pipeline_depth=3,
        ),
        replace(
            fed,
            encoding="ent",
            accumulator_width=44,
            final_adder="sklansky",
            pipeline_depth=2,
            reduction=4,
        ),
        replace(array, width_a=16, accumulator_width=40, final_adder="ripple", pipeline_depth=3),
        replace(
            fed,
            encoding="csd",
            width_a=4,
            accumulator_width=24,
            final_adder="brent_kung",
            pipeline_depth=2,
        ),
        replace(
            array,
            width_a=4,
            width_b=16,
            accumulator_width=22,
            final_adder="kogge_stone",
            pipeline_depth=3,
            reduction=2,
        ),
        replace(fed, encoding="ent", accumulator_width=20, reduction=4),
    )


def _merged(mac: PE) -> tuple[PE, ...]:
    merged = replace(mac, accumulator="merged")
    sparse = replace(merged, bit_weights="temporal_sparse")
    return (
        replace(
            sparse,
            width_a=16,
            width_b=4,
            accumulator_width=40,
            final_adder="brent_kung",
            compressor="linear",
            pipeline_depth=2,
        ),
        replace(
            sparse,
            width_a=16,
            width_b=16,
            accumulator_width=48,
            final_adder="ripple",
            compressor="4to2",
            pipeline_depth=2,
        ),
        replace(
            merged,
            encoding="csd",
            encoder_place="edge",
            bit_weights="temporal_dense",
            width_a=4,
            accumulator_width=40,
            final_adder="kogge_stone",
            compressor="linear",
            pipeline_depth=2,
        ),
        replace(
            merged,
            encoding="ent",
            encoder_place="edge",
            accumulator_width=36,
            final_adder="sklansky",
            compressor="4to2",
            reduction=4,
        ),
        replace(
            merged,
            encoding="serial_twos",
            bit_weights="temporal_dense",
            width_b=16,
            accumulator_width=44,
            final_adder="brent_kung",
            pipeline_depth=2,
        ),
        replace(
            sparse,
            encoding="serial_twos",
            width_b=16,
            accumulator_width=44,
            final_adder="sklansky",
            compressor="wallace",
            pipeline_depth=3,
        ),
    )


def _kept(kept: PE) -> tuple[PE, ...]:
    array = replace(kept, encoding="radix2")
    return (
        replace(
            kept,
            encoding="ent",
            encoder_place="edge",
            accumulator_width=48,
            compressor="linear",
            pipeline_depth=2,
            reduction=4,
        ),
        replace(array, width_a=4, accumulator_width=24, compressor="4to2", reduction=4),
        replace(array, accumulator_width=16, shift_place="simd"),
    )


def _one_digit(digit: PE, fed: PE) -> tuple[PE, ...]:
    serial = replace(digit, encoding="serial_twos")
    fed_serial = replace(serial, encoder_place="edge")
    sparse = replace(serial, bit_weights="temporal_sparse", width_a=16)
    return (
        replace(fed, accumulator_width=48, compressor="linear", pipeline_depth=2, lanes=8),
        replace(digit, width_b=16, accumulator_width=48, compressor="4to2", pipeline_depth=3),
        replace(
            serial,
            width_a=16,
            width_b=16,
            accumulator_width=48,
            compressor="4to2",
            pipeline_depth=3,
        ),
        replace(fed, width_a=16, width_b=16, compressor="4to2", pipeline_depth=2),
        replace(
            serial,
            width_a=4,
            width_b=16,
            accumulator_width=26,
            compressor="4to2",
            pipeline_depth=2,
            lanes=2,
        ),
        replace(
            fed,
            encoding="csd",
            width_a=16,
            width_b=16,
            accumulator_width=48,
            compressor="linear",
            lanes=8,
        ),
        replace(fed_serial, width_a=4, accumulator_width=30, pipeline_depth=2),
        replace(sparse, width_b=16, accumulator_width=30, compressor="wallace", lanes=4),
        replace(
            fed,
            encoding="serial_sign_magnitude",
            width_a=16,
            width_b=16,
            accumulator_width=28,
            compressor="linear",
            pipeline_depth=2,
            lanes=8,
        ),
    )


def classic_pes() -> tuple[PE, ...]:
    """The textbook PE and the published optimisations of it, in the order of the paper."""
    names = ("systolic_os", "systolic_os/OPT1", "systolic_os/OPT2", "OPT3", "OPT4C", "OPT4E")
    return tuple(named_array(name).pe.hardware() for name in names)
