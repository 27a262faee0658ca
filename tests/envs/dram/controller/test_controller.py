"""The embedded memory controller: hand-computed answers, JEDEC timing, conservation, errors.

DDR3-1600 in clocks: RL 10, WL 8, BL/2 4, tRCD 10, tRP 10, tRAS 28, tRC 38, tCCD 4, tRRD 5, tFAW 24,
tWTR 6, tRTP 6, tWR 12, tREFI 6240, tRFC 88. A request that arrives in clock 0 is at the controller
in clock 1 (think delay) and its bank can be activated in that clock.
"""

from __future__ import annotations

import dataclasses
import gc
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archgym.envs.dram.controller import config as choices
from archgym.envs.dram.controller.config import ControllerConfig
from archgym.envs.dram.controller.controller import simulate
from archgym.envs.dram.controller.prepared_trace import prepare
from archgym.envs.dram.device.address_mapping import address_mapping
from archgym.envs.dram.traces.trace import Trace
from archgym.envs.dram.validation.timing_checker import violations
from archgym.errors import InvalidValueError, SimulationError, UnknownNameError
from tests.envs.dram.controller.controller_runs import (
    DDR3,
    DDR4,
    PLAIN,
    bank_row,
    bursts,
    cycles_of,
    kinds,
    make_trace,
    mixed_trace,
    random_config,
    run,
    simulated,
)


class TestByHand:
    def test_read_to_a_closed_bank(self) -> None:
        # think 1 + tRCD 10 + RL 10 + BL/2 4.
        assert run((0, "R", 0)).cycles == 25

    def test_write_to_a_closed_bank(self) -> None:
        # think 1 + tRCD 10 + WL 8 + BL/2 4.
        assert run((0, "W", 0)).cycles == 23

    def test_arrival_between_clock_edges_waits_for_the_edge(self) -> None:
        # 1300 ps is in clock 1 (1250 ps); it is taken at the edge of clock 2.
        trace = Trace("late", np.array([1300]), np.array([0]), np.array([0]))
        result = simulated(trace, DDR3)
        assert result.cycles == 27
        assert result.read_latency.mean_ns == pytest.approx(27 * 1.25 - 1.3)

    def test_row_hits_follow_each_other_at_tccd(self) -> None:
        # First read 25, then a burst each tCCD 4.
        result = run(*((0, "R", 64 * i) for i in range(6)))
        assert result.cycles == 25 + 5 * 4
        assert result.commands["act"] == 1
        assert result.row_hit_rate == pytest.approx(5 / 6)

    def test_row_hits_in_one_bank_group_follow_at_tccd_l(self) -> None:
        # DDR4: 1 + tRCD 16 + RL 16 + 4 = 37, then one each tCCD_L 6.
        trace = make_trace(*((0, "R", 64 * i) for i in range(5)), clock_ps=833)
        assert simulated(trace, DDR4).cycles == 37 + 4 * 6

    def test_bank_group_interleaving_halves_the_gap_to_tccd_s(self) -> None:
        # Four groups: activates at 1, 5, 9, 13 (tRRD_S 4); the first read at 17, then one each 4.
        trace = make_trace(*((0, "R", 64 * i) for i in range(8)), clock_ps=833)
        config = dataclasses.replace(PLAIN, address_mapping="bgi")
        assert simulated(trace, DDR4, config).cycles == 37 + 7 * 4

    def test_row_conflict(self) -> None:
        # ACT 1, RD 11, PRE max(1 + tRAS 28, 11 + tRTP 6) = 29, ACT 39, RD 49, data until 63.
        result = run((0, "R", bank_row(0, 0)), (0, "R", bank_row(0, 1)))
        assert cycles_of(result, "pre") == [29]
        assert cycles_of(result, "act") == [1, 39]
        assert result.cycles == 63

    def test_auto_precharge_waits_for_tras(self) -> None:
        # ACT 1, RDA 11; the row closes at max(11 + 6, 1 + 28) = 29, so ACT again at 39 = 1 + tRC.
        result = run((0, "R", bank_row(0, 0)), (0, "R", bank_row(0, 1)), page_policy="closed")
        assert cycles_of(result, "act") == [1, 39]
        assert result.commands["rda"] == 2
        assert result.commands["pre"] == 0

    def test_auto_precharge_after_a_write_waits_for_the_recovery(self) -> None:
        # ACT 1, WRA 11, row closed at 11 + 8 + 4 + 12 = 35, ACT at 45.
        result = run((0, "W", bank_row(0, 0)), (0, "R", bank_row(0, 1)), page_policy="closed")
        assert cycles_of(result, "act") == [1, 45]

    def test_write_to_read_turnaround(self) -> None:
        # WR 11, RD 11 + WL 8 + 4 + tWTR 6 = 29, data until 43.
        result = run((0, "W", 0), (0, "R", 64))
        assert cycles_of(result, "rd") == [29]
        assert result.cycles == 43

    def test_read_to_write_turnaround(self) -> None:
        # RD 11, WR 11 + RL 10 + 4 + 2 - WL 8 = 19, data until 31.
        result = run((0, "R", 0), (0, "W", 64))
        assert cycles_of(result, "wr") == [19]
        assert result.cycles == 31

    def test_four_activate_window(self) -> None:
        # Requests are taken at 1, 2, 3, 4, 5. ACT at 1 and 6 (tRRD); at 11 the older RD goes
        # first, so ACT at 12 and 17; the fifth waits for 1 + tFAW 24 = 25.
        result = run(*((0, "R", bank_row(bank, 0)) for bank in range(5)))
        assert cycles_of(result, "act") == [1, 6, 12, 17, 25]

    def test_refresh_each_trefi(self) -> None:
        # The last request comes ten and a half intervals after the start: ten refreshes, each
        # of an idle rank whose only open row was closed for the first one.
        half = 6240 // 2
        result = run((0, "R", 0), (21 * half, "R", 0), refresh_policy="all_bank")
        assert cycles_of(result, "refab") == [6240 + 10] + [k * 6240 for k in range(2, 11)]
        assert cycles_of(result, "preab") == [6240]

    def test_refresh_is_postponed_under_load(self) -> None:
        # Due at 1, 2, 3 and 4 tREFI, each postponed; at 5 tREFI four are owed and it is forced.
        trace = mixed_trace(3, 9000, 2.0)
        config = ControllerConfig(refresh_max_postponed=4)
        result = simulated(trace, DDR3, config, log=True)
        assert 5 * 6240 < cycles_of(result, "refab")[0] < 5 * 6240 + 100

    def test_refresh_is_pulled_in_when_idle(self) -> None:
        # At the first tREFI one that is due and three ahead, tRFC 88 apart; then one each tREFI.
        result = run(
            (0, "R", 0),
            (6240 * 3 - 100, "R", 0),
            refresh_policy="all_bank",
            refresh_max_pulledin=3,
        )
        first = 6240 + 10
        ahead = [first + 88 * k for k in range(4)]
        assert cycles_of(result, "refab") == [*ahead, 2 * 6240]

    def test_one_active_transaction_closes_the_loop(self) -> None:
        # First response at 25, taken until 26; then arbiter to controller 27, RD at once, 41.
        result = run((0, "R", 0), (0, "R", 64), arbiter="fifo", max_active_transactions=1)
        assert result.cycles == 41
        # An initiator that is done with a response at once: free in 25, so one clock earlier.
        prompt = run(
            (0, "R", 0),
            (0, "R", 64),
            arbiter="fifo",
            max_active_transactions=1,
            end_response_delay_cycles=0,
        )
        assert prompt.cycles == 40

    def test_fifo_arbiter_hands_over_every_other_clock(self) -> None:
        # At the controller in clocks 1, 3 and 5 instead of 1, 2 and 3.
        result = run(*((0, "R", bank_row(i, 0)) for i in range(3)), arbiter="fifo")
        assert cycles_of(result, "act") == [1, 6, 12]
        slow = run(
            *((0, "R", bank_row(i, 0)) for i in range(2)), arbiter="fifo", think_delay_fw_cycles=7
        )
        assert cycles_of(slow, "act") == [7, 15]

    def test_a_full_buffer_holds_back_the_next_request(self) -> None:
        # One entry: the second request is taken when the first one's RD goes at 11.
        result = run((0, "R", bank_row(0, 0)), (0, "R", bank_row(1, 0)), request_buffer_size=1)
        assert cycles_of(result, "act") == [1, 12]

    def test_fr_fcfs_serves_the_hit_first_and_fifo_does_not(self) -> None:
        requests = [(0, "R", bank_row(0, 0)), (0, "R", bank_row(0, 1)), (0, "R", bank_row(0, 0, 8))]
        assert run(*requests).commands["act"] == 2
        assert run(*requests, scheduler="fifo").commands["act"] == 3

    def test_grouping_prefers_the_direction_of_the_last_burst(self) -> None:
        requests = [(0, "R", 0), (0, "W", 64), (0, "R", 128)]
        assert kinds(run(*requests, scheduler="fr_fcfs_grp")) == "rrw"
        assert kinds(run(*requests)) == "rwr"

    def test_grouping_keeps_a_read_behind_the_write_to_its_address(self) -> None:
        requests = [(0, "R", 0), (0, "W", 64), (0, "R", 64)]
        assert kinds(run(*requests, scheduler="fr_fcfs_grp")) == "rwr"

    def test_adaptive_page_policies(self) -> None:
        alone = [(0, "R", 0)]
        hit = [(0, "R", 0), (0, "R", 64)]
        miss = [(0, "R", 0), (0, "R", bank_row(0, 1))]
        for requests, opened, closed in ((alone, 0, 1), (hit, 0, 1), (miss, 1, 2)):
            assert run(*requests, page_policy="open_adaptive").commands["rda"] == opened
            assert run(*requests, page_policy="closed_adaptive").commands["rda"] == closed

    def test_reordering_response_queue_returns_in_request_order(self) -> None:
        # The third request overtakes the second in the bank, but not on the way back.
        requests = [(0, "R", bank_row(0, 0)), (0, "R", bank_row(0, 1)), (0, "R", bank_row(0, 0, 8))]
        plain, ordered = run(*requests), run(*requests, resp_queue="reorder")
        assert plain.latency_ns is not None
        assert ordered.latency_ns is not None
        # RD 11 and 15, PRE 29, ACT 39, RD 49.
        assert plain.latency_ns.tolist() == [25 * 1.25, 63 * 1.25, 29 * 1.25]
        assert ordered.latency_ns.tolist() == [25 * 1.25, 63 * 1.25, 64 * 1.25]

    def test_strict_mux_keeps_bursts_in_order(self) -> None:
        # Bank 0 needs another row for the second request; bank 1 could go earlier.
        requests = [(0, "R", bank_row(0, 0)), (0, "R", bank_row(0, 1)), (0, "R", bank_row(1, 0))]
        strict = run(*requests, scheduler="fifo", cmd_mux="strict")
        assert [bank for _, bank in bursts(strict)] == [0, 0, 1]
        oldest = run(*requests, scheduler="fifo")
        assert [bank for _, bank in bursts(oldest)] == [0, 1, 0]

    def test_write_watermarks(self) -> None:
        # Five reads and five writes have come when the row is open. More than two writes wait, so
        # writes go until one is left, then the reads, then, for want of reads, the last write.
        requests = [(0, "W" if i % 2 else "R", 64 * i) for i in range(10)]
        result = run(
            *requests,
            scheduler="grp_fr_fcfs_wm",
            scheduler_buffer="shared",
            request_buffer_size=16,
            high_watermark=2,
            low_watermark=1,
        )
        assert kinds(result) == "wwww" + "rrrrr" + "w"


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), shift=st.integers(1, 10**6))
def test_shifting_a_trace_by_whole_clocks_changes_nothing(seed: int, shift: int) -> None:
    trace = mixed_trace(seed, 60, 5.0)
    config = random_config(seed, DDR4, refresh_policy="none", power_down_policy="none")
    later = Trace(
        "later", trace.arrival_ps + shift * DDR4.device.t_ck_ps, trace.address, trace.is_write
    )
    now = simulated(trace, DDR4, config, log=True)
    then = simulated(later, DDR4, config, log=True)
    assert then.cycles == now.cycles + shift
    assert np.array_equal(then.log[0][:, 1:], now.log[0][:, 1:])
    assert then.read_latency.max_ns == pytest.approx(now.read_latency.max_ns, nan_ok=True)


DECODED_BY = {"address_mapping", "channel_interleave"}
"""Settings that decode the trace, of which the kernel needs to know nothing."""


@pytest.mark.parametrize(
    "name", [one.name for one in dataclasses.fields(ControllerConfig) if one.name not in DECODED_BY]
)
def test_every_setting_reaches_the_kernel(name: str) -> None:
    config = ControllerConfig(scheduler="fifo")
    value = getattr(config, name)
    others = choices.CHOICES[name] if name in choices.CHOICES else (value + 1,)
    change: dict[str, Any] = {name: next(one for one in others if one != value)}
    changed = dataclasses.replace(config, **change).settings()
    assert (changed != config.settings()).any(), f"ControllerConfig.settings leaves out {name}"


def test_equal_inputs_give_equal_results() -> None:
    trace = mixed_trace(1, 2000, 4.0)
    config = random_config(5, DDR3)
    assert simulated(trace, DDR3, config) == simulated(trace, DDR3, config)


def test_a_trace_is_decoded_once_for_each_mapping() -> None:
    trace = mixed_trace(2, 50, 4.0)
    first = prepare(trace, DDR4, "rbc")
    assert prepare(trace, DDR4, "rbc").channels is first.channels
    assert prepare(trace, DDR4, "brc").channels is not first.channels
    assert prepare(trace, DDR3, "rbc").channels is not first.channels
    assert simulate(first, PLAIN) == simulated(trace, DDR4)


def test_the_cache_of_decoded_traces_keeps_no_trace_alive() -> None:
    trace = mixed_trace(2, 50, 4.0)
    simulated(trace, DDR4)
    alive = weakref.ref(trace)
    del trace
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("buffer", choices.SCHEDULER_BUFFERS)
def test_a_larger_buffer_does_not_slow_a_stream_over_the_banks(buffer: str) -> None:
    # Reads that go round the banks and rows: nothing to reorder, only more banks at work at once.
    trace = make_trace(*((0, "R", bank_row(i % 8, i // 8)) for i in range(200)))
    times = [
        run_time(trace, dataclasses.replace(PLAIN, scheduler_buffer=buffer, request_buffer_size=k))
        for k in (1, 2, 4, 8, 16, 64)
    ]
    assert times == sorted(times, reverse=True)
    assert times[-1] < times[0]


def run_time(trace: Trace, config: ControllerConfig) -> int:
    return simulated(trace, DDR3, config).cycles


def test_idle_time_costs_nothing() -> None:
    # A minute between two requests: 7.7 million refreshes at tREFI 7.8 us.
    far = 60 * 10**12
    trace = Trace("far apart", np.array([0, far]), np.array([0, 0]), np.array([0, 0]))
    for config in (PLAIN, ControllerConfig(), ControllerConfig(refresh_max_pulledin=8)):
        result = simulated(trace, DDR3, config)
        assert result.time_ns == pytest.approx(60e9, rel=1e-6)
        due = far // (6240 * 1250) if config.refresh_policy == "all_bank" else 0
        ahead = config.refresh_max_pulledin
        assert result.commands["refab"] in (due + ahead, due + ahead - 1, due + ahead + 1)
        standby = result.active_ns + result.precharged_ns
        assert standby == pytest.approx(result.time_ns, rel=1e-9)


def test_latency_statistics() -> None:
    trace = mixed_trace(11, 3000, 6.0)
    result = simulated(trace, DDR3, ControllerConfig(), log=True)
    assert result.latency_ns is not None
    reads = np.sort(result.latency_ns[trace.is_write == 0])
    assert result.read_latency.mean_ns == pytest.approx(reads.mean())
    assert result.read_latency.max_ns == pytest.approx(reads[-1])
    assert result.read_latency.p95_ns == pytest.approx(reads[int(0.95 * len(reads))])
    assert result.read_latency.p99_ns == pytest.approx(reads[int(0.99 * len(reads))])
    assert result.write_latency.mean_ns == pytest.approx(
        result.latency_ns[trace.is_write == 1].mean()
    )
    assert result.read_latency_accepted.mean_ns <= result.read_latency.mean_ns
    assert result.bandwidth_gb_per_s == pytest.approx(3000 * 64 / result.time_ns)
    assert result.power_mw == pytest.approx(result.energy_pj / result.time_ns)
    assert result.energy_per_bit_pj == pytest.approx(result.energy_pj / (3000 * 512))


def test_a_trace_without_reads_has_no_read_latency() -> None:
    result = run((0, "W", 0))
    assert np.isnan(result.read_latency.mean_ns)
    assert np.isnan(result.read_latency.p99_ns)
    assert np.isnan(result.read_latency_accepted.mean_ns)


def test_dramsys_rules_let_ddr4_ignore_trc_after_auto_precharge() -> None:
    trace = make_trace((0, "R", 0), (0, "R", 1 << 17), clock_ps=833)
    config = dataclasses.replace(PLAIN, page_policy="closed", timing_rules="dramsys51")
    result = simulated(trace, DDR4, config, log=True)
    # ACT 1, RDA 17, ACT 17 + tRTP 12 + tRP 16 = 45, although tRC 55 asks for 56.
    assert cycles_of(result, "act") == [1, 45]
    assert violations(DDR4, result.log[0]) == [
        "cycle 45, rank 0, bank 0: act: tRC needs 55 cycles, has 44",
        "cycle 45, rank 0, bank 0: act: tRP needs 16 cycles, has 5",
    ]


class TestBadInput:
    def test_a_mapping_for_another_device(self) -> None:
        with pytest.raises(InvalidValueError, match="DDR3-1600 needs"):
            prepare(make_trace((0, "R", 0)), DDR3, address_mapping("rbc", DDR4))

    @pytest.mark.parametrize("name", sorted(choices.CHOICES))
    def test_unknown_values(self, name: str) -> None:
        wrong: dict[str, Any] = {name: "nonsense"}
        with pytest.raises(UnknownNameError, match=name):
            ControllerConfig(**wrong)

    def test_a_near_miss_is_suggested(self) -> None:
        with pytest.raises(UnknownNameError, match="Did you mean 'closed_adaptive'"):
            ControllerConfig(page_policy="closed-adaptive")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("request_buffer_size", 0),
            ("request_buffer_size", 2.5),
            ("max_active_transactions", 0),
            ("refresh_max_postponed", -1),
            ("refresh_max_pulledin", True),
            ("think_delay_fw_cycles", -1),
            ("low_watermark", 12),
        ],
    )
    def test_numbers_out_of_range(self, name: str, value: Any) -> None:
        with pytest.raises(InvalidValueError, match=name):
            dataclasses.replace(PLAIN, **{name: value})

    def test_strict_needs_fifo(self) -> None:
        with pytest.raises(InvalidValueError, match="fifo"):
            ControllerConfig(cmd_mux="strict")

    def test_a_mapping_that_the_device_has_not(self) -> None:
        with pytest.raises(UnknownNameError, match="address mapping 'bgi'"):
            run((0, "R", 0), address_mapping="bgi")

    def test_a_trace_beyond_the_range_of_time(self) -> None:
        trace = Trace("too long", np.array([2**60]), np.array([0]), np.array([0]))
        with pytest.raises(SimulationError, match="too long"):
            simulated(trace, DDR3)
