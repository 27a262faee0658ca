"""Positions of the values in the vectors that the kernel reads and writes."""

from __future__ import annotations

__all__ = ["CODES", "FOUND", "HARDWARE", "LEVELS", "OBJECTIVES"]

CODES = {
    "nvdla_ws": 0,
    "shidiannao_os": 1,
    "eyeriss_rs": 2,
    "kx_free": 3,
    "xp_ws": 4,
    "nlr_cp": 5,
    "systolic_os": 6,
    "systolic_ws": 7,
    "systolic_is": 8,
}
"""Dataflows."""

OBJECTIVES = {"latency": 0, "energy": 1, "edp": 2}
"""What the mapper minimises; the other one of latency and energy breaks ties."""

HARDWARE = (
    "dataflow",
    "rows",
    "columns",
    "lanes",
    "input_rf_words",
    "weight_rf_words",
    "output_rf_words",
    "buffer_bytes",  # that one working set may fill: half where double buffered
    "input_part_bytes",  # fixed parts, negative for none
    "weight_part_bytes",
    "output_part_bytes",
    "noc_bytes",  # a cycle, each way
    "port_bytes",  # a cycle, all banks
    "dram_bytes",  # a cycle
    "dram_links",  # 0 shared, 1 one for each operand, 2 one each way
    "word_bytes",
    "sum_bytes",  # of a partial sum
    "double_buffered",
    "bypass",  # weights go around the buffer
    "waits",  # for the whole first buffer tile
    "maestro",  # MAESTRO's rules for waiting, see datacentric.py
    "storage_order",  # SCALE-Sim's prefetch, see systolic.py
    "divide",  # tiles divide their loops, see timeloop/mapspace.py
    "victory",  # Timeloop's victory condition, see timeloop/random_search.py
    "orders",  # factors whose orders are the mappings, see zigzag/order_search.py; 0 for none
    "drains",  # the last results leave the array a cycle a row and column
    "thirds",  # the mapper tries parts of 3 times a power of two, see spatial_layouts.py
    "mac_pj",
    "input_rf_pj",  # a word
    "weight_rf_pj",
    "output_rf_pj",
    "buffer_pj",  # a byte
    "noc_pj",  # a byte
    "dram_pj",  # a byte
)
"""Positions in the hardware vector."""

LEVELS = ("mac", "register_file", "noc", "buffer", "dram")
"""Where energy goes, outward."""

FOUND = (
    "cycles",
    "compute_cycles",
    "noc_cycles",
    "port_cycles",
    "dram_cycles",
    "fill_cycles",
    "energy_pj",
    "mac_pj",
    "register_file_pj",
    "noc_pj",
    "buffer_pj",
    "dram_pj",
    "dram_input_words",
    "dram_weight_words",
    "dram_output_words",
    "dram_sum_words",  # partial sums read back
    "buffer_input_words",  # read from the buffer into the array
    "buffer_weight_words",
    "buffer_output_words",  # written by the array
    "buffer_sum_words",  # partial sums read back into the array
    "dram_bytes",
    "macs",
    "spatial_K",
    "spatial_C",
    "spatial_R",
    "spatial_P",
    "spatial_Q",
    "spatial_G",
    "register_K",
    "register_C",
    "register_window",  # 0 one weight of the window, 1 a row of it, 2 all
    "register_Q",
    "register_order",
    "tile_K",
    "tile_C",
    "tile_P",
    "tile_Q",
    "dram_order",
)
"""Positions in the result vector of one layer."""
