"""Ranks, channels, kinds of refresh, power-down, time-out pages and posted writes: known answers.

DDR3-1600 as in test_controller.py, and tRTRS 1, tXP 6, tXS 96, tXSDLL 512; with two ranks the rank
is bit 16 of an address under rbc. LPDDR4-3200: bank 13-11, tREFIpb 780, tRFCpb 224, tRPpb 29,
tRRD 16; an activate takes 4 clocks, a refresh 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.result import Result
from archgym.envs.dram.device.memory import load_memory
from archgym.envs.dram.traces.trace import Trace
from archgym.errors import InvalidValueError
from tests.envs.dram.controller.controller_runs import (
    DDR3,
    bank_row,
    cycles_of,
    kinds,
    mixed_trace,
    named,
    random_config,
    run,
    simulated,
)

TWO_RANKS = load_memory({"device": "DDR3-1600", "ranks": 2})
LPDDR4 = load_memory("LPDDR4-3200")
DDR5 = load_memory("DDR5-4800")


def commands(result: Result) -> list[tuple[int, str]]:
    return [(cycle, name) for cycle, name, *_ in named(result)]


@pytest.mark.parametrize(
    ("first", "second", "at"),
    [
        # Bursts of 4 clocks and tRTRS 1 between their data; both rows are open from 12 on.
        ("R", "R", 11 + 4 + 1),
        ("W", "W", 11 + 4 + 1),
        # Read data end at 11 + RL 10 + 4; write data may begin at 26: WL 8 before.
        ("R", "W", 18),
        # Write data end at 11 + WL 8 + 4; read data may begin at 24: RL 10 before. No tWTR.
        ("W", "R", 14),
    ],
)
def test_turnaround_between_ranks(first: str, second: str, at: int) -> None:
    result = run((0, first, 0), (0, second, 1 << 16), memory=TWO_RANKS)
    # No tRRD between ranks: activates in 1 and 2.
    assert cycles_of(result, "act", rank=0) == [1]
    assert cycles_of(result, "act", rank=1) == [2]
    assert kinds(result) == (first + second).lower()
    assert named(result)[-1][0] == at


def test_refreshes_of_the_ranks_are_spread() -> None:
    result = run((0, "R", 0), (6240 * 3, "R", 0), memory=TWO_RANKS, refresh_policy="all_bank")
    assert cycles_of(result, "refab", rank=0) == [6240 + 10, 2 * 6240, 3 * 6240]
    assert cycles_of(result, "refab", rank=1) == [3120, 3120 + 6240, 3120 + 2 * 6240]
    assert cycles_of(result, "preab", rank=1) == []


def test_one_rank_works_while_the_other_is_refreshed() -> None:
    # Rank 1 is refreshed from 3120 to 3208.
    requests = [(3120, "R", 0), (3120, "R", 1 << 16)]
    result = run(*requests, memory=TWO_RANKS, refresh_policy="all_bank")
    assert cycles_of(result, "act", rank=0) == [3121]
    assert cycles_of(result, "act", rank=1) == [3120 + 88]


@pytest.mark.parametrize("seed", range(4))
def test_channels_are_memories_of_their_own(seed: int) -> None:
    # With channels in turn for each request, bit 6 tells the channel.
    memory = load_memory({"device": "DDR3-1600", "channels": 2})
    trace = mixed_trace(seed, 300, 5.0)
    config = random_config(seed, DDR3)
    both = simulated(trace, memory, config, log=True)
    alone = []
    for channel in (0, 1):
        own = (trace.address >> 6 & 1) == channel
        address = trace.address[own] >> 7 << 6 | trace.address[own] & 63
        part = Trace("part", trace.arrival_ps[own], address, trace.is_write[own])
        alone.append(simulated(part, DDR3, config, log=True))
    assert len(both.log) == 2
    for log, one in zip(both.log, alone, strict=True):
        assert np.array_equal(log, one.log[0])
    assert both.cycles == max(one.cycles for one in alone)
    assert both.latency_ns is not None
    latencies = [one.latency_ns for one in alone if one.latency_ns is not None]
    assert np.array_equal(both.latency_ns, np.concatenate(latencies))
    for name, number in both.commands.items():
        assert number == sum(one.commands[name] for one in alone)
    assert both.energy.activate_pj == pytest.approx(sum(one.energy.activate_pj for one in alone))
    assert both.read_latency.max_ns == max(one.read_latency.max_ns for one in alone)
    total = both.reads * both.read_latency.mean_ns
    assert total == pytest.approx(sum(one.reads * one.read_latency.mean_ns for one in alone))


def test_a_channel_without_requests_is_idle() -> None:
    memory = load_memory({"device": "DDR3-1600", "channels": 2})
    result = run((0, "R", 0), (0, "R", 128), memory=memory)
    assert len(result.log) == 1
    assert result.active_ns + result.precharged_ns == pytest.approx(2 * result.time_ns)


class TestRefreshOfSomeBanks:
    def test_per_bank_in_turn(self) -> None:
        # Bank 0 was left open: precharge in 780, refresh tRPpb later. The others need none.
        result = run((0, "R", 0), (9 * 780, "R", 0), memory=LPDDR4, refresh_policy="per_bank")
        refreshes = [(c, bank) for c, name, _, bank, _ in named(result) if name == "refpb"]
        assert refreshes == [(809, 0)] + [(780 * k, k - 1) for k in range(2, 9)] + [(780 * 9, 0)]
        assert cycles_of(result, "pre") == [780]
        # The request for bank 0 waits for its second refresh: edge to edge tRFCpb 224.
        assert cycles_of(result, "act")[-1] == 7020 + 1 + 224 - 3

    def test_per_bank_leaves_the_other_banks_alone(self) -> None:
        # Bank 0 is refreshed in 780; bank 3 can be activated tRRD 16 after that, edge to edge.
        requests = [(781, "R", 0), (781, "R", 3 << 11)]
        result = run(*requests, memory=LPDDR4, refresh_policy="per_bank")
        found = [(c, name, bank) for c, name, _, bank, _ in named(result)]
        assert found[:2] == [(780, "refpb", 0), (794, "act", 3)]
        assert (780 + 1 + 224 - 3, "act", 0) in found

    def test_per_bank_takes_an_idle_bank_first(self) -> None:
        # At 780 requests for bank 0 wait.
        requests = [(760, "R", row << 14) for row in range(3)]
        result = run(*requests, memory=LPDDR4, refresh_policy="per_bank")
        refreshes = [bank for _, name, _, bank, _ in named(result) if name == "refpb"]
        assert refreshes[0] == 1

    def test_same_bank_takes_one_of_each_group(self) -> None:
        device = DDR5.device
        # Bank 0 of every group is refreshed; banks 0 and 28 wait, bank 1 does only for tREFSBRD.
        due = device.t_refi_sb_cycles
        banks = {bank: bank % 4 << 15 | bank // 4 << 12 for bank in (0, 28, 1)}
        requests = [(due + 1, "R", address) for address in banks.values()]
        result = run(*requests, memory=DDR5, refresh_policy="same_bank")
        act = {bank: c for c, name, _, bank, _ in named(result) if name == "act"}
        assert named(result)[0][:4] == (due, "refsb", 0, 0)
        assert set(act) == set(banks)
        # An activate's edge is its second clock.
        assert act[0] == due + device.t_rfc_sb_cycles - 1
        assert act[28] == act[0] + device.t_rrd_s_cycles
        assert act[1] == due + device.t_ref_act_cycles - 1

    def test_same_bank_closes_them_together(self) -> None:
        # Bank 0 of groups 0 and 7.
        result = run(
            (0, "R", 0),
            (0, "R", 7 << 12),
            (3000, "R", 0),
            memory=DDR5,
            refresh_policy="same_bank",
        )
        assert cycles_of(result, "presb") == [DDR5.device.t_refi_sb_cycles]
        assert result.commands["pre"] == 0
        assert result.commands["refsb"] == 1

    @pytest.mark.parametrize(
        ("memory", "policy"), [(DDR3, "per_bank"), (DDR3, "same_bank"), (LPDDR4, "same_bank")]
    )
    def test_a_device_without_it(self, memory: Any, policy: str) -> None:
        with pytest.raises(InvalidValueError, match=f"'{policy}': {memory.name} has none, all_ba"):
            run((0, "R", 0), memory=memory, refresh_policy=policy)


class TestPowerDown:
    def test_with_a_bank_open(self) -> None:
        # RD 11, entry RL 10 + 4 + 1 later; the request is at the controller in 5001, and the
        # read goes tXP 6 after the exit.
        result = run((0, "R", 0), (5000, "R", 0), power_down_policy="staggered")
        expected = [(1, "act"), (11, "rd"), (26, "pde"), (5001, "pdx"), (5007, "rd")]
        assert commands(result) == expected
        assert result.power_down_active_ns == pytest.approx((5001 - 26) * 1.25)
        assert result.power_down_precharged_ns == 0
        assert result.energy.power_down_pj == pytest.approx(4975 * 35 * 1.5 * 1.25 * 8)

    def test_with_all_banks_closed(self) -> None:
        result = run(
            (0, "R", 0), (5000, "R", 0), power_down_policy="staggered", page_policy="closed"
        )
        expected = [
            (1, "act"),
            (11, "rda"),
            (26, "pde"),
            (5001, "pdx"),
            (5007, "act"),
            (5017, "rda"),
        ]
        assert commands(result) == expected
        assert result.power_down_precharged_ns == pytest.approx(4975 * 1.25)
        assert result.power_down_active_ns == 0

    def test_self_refresh_at_the_second_refresh(self) -> None:
        # Arrival in 37440. Out of self-refresh in 37441, a refresh tXS 96 later, then tRFC 88; the
        # read has to wait for tXSDLL 512.
        result = run(
            (0, "R", 0),
            (6240 * 6, "R", 0),
            power_down_policy="staggered",
            refresh_policy="all_bank",
        )
        assert commands(result) == [
            (1, "act"),
            (11, "rd"),
            (26, "pde"),
            (6240, "pdx"),
            (6246, "preab"),
            (6256, "refab"),
            (6257, "pde"),
            (12480, "pdx"),
            (12486, "sre"),
            (37441, "srx"),
            (37537, "refab"),
            (37625, "act"),
            (37441 + 512, "rd"),
        ]
        assert result.power_down_active_ns == pytest.approx((6240 - 26) * 1.25)
        assert result.power_down_precharged_ns == pytest.approx((12480 - 6257) * 1.25)
        assert result.self_refresh_ns == pytest.approx((37441 - 12486) * 1.25)
        # Open: 1 to 26, 6240 to 6246, refreshes but for their last tRP (78 each, the first one's
        # standby cut at the entry into power-down), and from 37625 to the end.
        assert result.cycles == 37953 + 14
        awake = result.cycles - (6214 + 6223 + 24955)
        assert result.active_ns + result.precharged_ns == pytest.approx(awake * 1.25)

    def test_the_other_rank_sleeps(self) -> None:
        requests = [(100 * k, "R", 0) for k in range(50)]
        result = run(*requests, memory=TWO_RANKS, power_down_policy="staggered")
        assert cycles_of(result, "pde", rank=1) == []  # it never had a request to end
        result = run((0, "R", 1 << 16), *requests, memory=TWO_RANKS, power_down_policy="staggered")
        assert len(cycles_of(result, "pde", rank=1)) == 1
        assert cycles_of(result, "pdx", rank=1) == []
        assert result.power_down_active_ns > 0.9 * result.time_ns

    def test_a_device_without_figures(self) -> None:
        hbm = load_memory("HBM2-2000")
        if hbm.device.t_xp_cycles:
            pytest.skip("the device file has them by now")
        with pytest.raises(InvalidValueError, match="t_xp_cycles is 0"):
            run((0, "R", 0), memory=hbm, power_down_policy="staggered")


class TestTimeOut:
    def test_the_row_is_closed_when_the_bank_had_no_request(self) -> None:
        # RD 11, precharge 64 later; the next row needs none of its own.
        result = run((0, "R", 0), (300, "R", bank_row(0, 1)), page_policy="timeout")
        expected = [(1, "act"), (11, "rd"), (75, "pre"), (301, "act"), (311, "rd")]
        assert commands(result) == expected
        assert (result.row_misses, result.row_conflicts) == (2, 0)

    def test_a_request_starts_it_anew(self) -> None:
        requests = [(0, "R", 0), (60, "R", 0), (300, "R", 0)]
        result = run(*requests, page_policy="timeout")
        assert cycles_of(result, "pre") == [61 + 64]
        assert result.row_hits == 1

    def test_it_waits_for_tras(self) -> None:
        result = run((0, "R", 0), (300, "R", 0), page_policy="timeout", page_timeout_cycles=1)
        assert cycles_of(result, "pre") == [29]

    def test_a_conflict_does_not_wait_for_it(self) -> None:
        result = run(
            (0, "R", 0), (0, "R", bank_row(0, 1)), page_policy="timeout", page_timeout_cycles=500
        )
        assert cycles_of(result, "pre") == [29]
        assert result.row_conflicts == 1


class TestPostedWrites:
    def test_merged_and_forwarded(self) -> None:
        # Taken in 1, 2, 3 and 4 and answered a clock later each; one burst for the first two.
        result = run((0, "W", 0), (0, "W", 0), (0, "R", 0), (0, "W", 64), write_policy="posted")
        assert result.latency_ns is not None
        assert (result.latency_ns / 1.25).tolist() == [2, 3, 4, 5]
        assert (result.merged, result.forwarded) == (1, 1)
        assert (result.writes, result.reads) == (3, 1)
        assert commands(result) == [(1, "act"), (11, "wr"), (15, "wr")]
        # The run ends with the last write's data: 15 + WL 8 + 4.
        assert result.cycles == 27

    def test_what_was_written_is_read_from_the_memory(self) -> None:
        result = run((0, "W", 0), (100, "R", 0), write_policy="posted")
        assert result.forwarded == 0
        assert result.commands["rd"] == 1

    def test_only_the_same_line(self) -> None:
        result = run((0, "W", 0), (0, "R", 64), (0, "R", 8), write_policy="posted")
        assert (result.forwarded, result.commands["rd"]) == (1, 1)

    def test_completed_writes_are_answered_after_their_burst(self) -> None:
        result = run((0, "W", 0), (0, "W", 0), (0, "R", 0))
        assert (result.merged, result.forwarded, result.commands["wr"]) == (0, 0, 2)
        assert result.latency_ns is not None
        assert result.latency_ns[0] == pytest.approx(23 * 1.25)


def test_power_down_saves_energy() -> None:
    trace = mixed_trace(5, 200, 400.0)
    awake = simulated(trace, DDR3, ControllerConfig())
    asleep = simulated(trace, DDR3, ControllerConfig(power_down_policy="staggered"))
    assert asleep.energy_pj < 0.95 * awake.energy_pj
    assert asleep.read_latency.mean_ns > awake.read_latency.mean_ns
