"""Figures of other simulators on designs that no model was developed with.

``scalesim.csv``: SCALE-Sim 3.0.0 (numpy 2.3.5) on 60 random layers and arrays, bandwidth set, some
of the arrays larger than the layer. ``scalesim_past.csv``: the same on 60 random convolutions whose
last windows reach past the input. ``maestro_mappings.csv``: MAESTRO 4eb08d1 on random two-level
mappings as GAMMA writes them (R and S whole, rows and columns by outputs), memory unlimited.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from archgym.envs.accelerator.cost.hardware import Hardware
from archgym.envs.accelerator.cost.mapping import LOOPS, Level, Mapping
from archgym.envs.accelerator.cost.model import evaluate, evaluate_mappings
from archgym.envs.accelerator.environment import AcceleratorEnvironment
from archgym.envs.accelerator.validation.reference import read_reference
from archgym.envs.accelerator.validation.table_rows import scalesim_run
from archgym.envs.accelerator.workload.layer import Layer
from archgym.envs.accelerator.workload.user_layers import read_layer
from archgym.problem.reference import read_table
from archgym.validation.validate import validate
from tests.envs.accelerator.random_designs import table

RECORDED = Path(__file__).parent / "recorded"


def test_scalesim_stalls_to_the_cycle() -> None:
    (reference,) = [r for r in read_reference(RECORDED / "scalesim.csv") if "bandwidth" in r.title]
    (one,) = validate(reference, AcceleratorEnvironment).agreements
    assert one.n == 60
    assert one.max_error == 0.0


def test_scalesim_fetches_nothing_past_the_input() -> None:
    path = RECORDED / "scalesim_past.csv"
    (reference,) = [r for r in read_reference(path) if "bandwidth" in r.title]
    (one,) = validate(reference, AcceleratorEnvironment).agreements
    assert one.n == 60
    assert one.max_error == 0.0
    names = {
        "dram_ifmap_reads": "dram_input_words",
        "dram_filter_reads": "dram_weight_words",
        "dram_ofmap_writes": "dram_output_words",
    }
    for row in read_table(path)[1]:
        run = scalesim_run(row)
        costs = evaluate(table(read_layer(run.layer)[0]), [run.hardware], mapper="off")
        for column, name in names.items():
            assert costs[name][0, 0] == row.number(column), row.line


def test_maestro_ranks_mappings_of_ones_own_alike() -> None:
    ours, theirs = [], []
    with (RECORDED / "maestro_mappings.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            clusters, size = int(row["clusters"]), int(row["cluster_size"])
            mapping = Mapping(clusters, size, level(row, "outer"), level(row, "inner"))
            hardware = Hardware(
                "custom",
                clusters,
                size,
                buffer_bytes=1 << 30,
                noc_bytes_per_cycle=float(row["noc_words_per_cycle"]),
                dram_bytes_per_cycle=1e9,
                word_bits=8,
                accumulator_bits=8,
                technology="maestro28",
            )
            layer = Layer("l", "conv", **{n: int(row[n]) for n in (*LOOPS, "stride")})
            found = evaluate_mappings(table(layer), [hardware], [mapping])
            ours.append(found["cycles"][0, 0])
            theirs.append(float(row["runtime_cycles"]))
    ratios = np.array(ours) / np.array(theirs)
    assert spearmanr(ours, theirs)[0] > 0.999
    assert np.mean(abs(ratios - 1)) < 0.005
    assert np.mean(ratios == 1) > 0.8


def level(row: dict[str, str], name: str) -> Level:
    """One level of a mapping."""
    k, c, r, s, p, q = (int(row[f"{name}_{loop}"]) for loop in LOOPS)
    return Level(row[f"{name}_spread"], row[f"{name}_order"], (k, c, r, s, p, q))
