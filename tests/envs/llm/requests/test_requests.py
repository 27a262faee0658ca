"""Requests from traces, files and generators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archgym.envs.llm.requests.specification import TRACES, load_requests
from archgym.errors import InvalidValueError, UnknownNameError

HEADER = "arrival_s,prompt_tokens,output_tokens"


def written(folder: Path, *lines: str, header: str = HEADER) -> Path:
    path = folder / "requests.csv"
    path.write_text("\n".join([header, *lines]))
    return path


@pytest.mark.parametrize(
    ("name", "first", "second_s"),
    [("azure_conv", (374, 44), 4.315), ("azure_code", (4808, 10), 0.052)],
)
def test_a_trace_begins_as_published(name: str, first: tuple[int, int], second_s: float) -> None:
    drawn = load_requests({"trace": name, "count": 3000}).drawn
    assert name in TRACES
    assert len(drawn) == 3000
    assert (drawn.prompt_tokens[0], drawn.output_tokens[0]) == first
    assert drawn.arrival_s[:2].tolist() == [0, pytest.approx(second_s)]
    assert (np.diff(drawn.arrival_s) >= 0).all()


def test_a_rate_stretches_the_times_and_keeps_their_pattern() -> None:
    slow = load_requests({"trace": "azure_conv", "rate_per_s": 2}).drawn
    fast = load_requests({"trace": "azure_conv", "rate_per_s": 8}).drawn
    assert slow.rate_per_s == pytest.approx(2)
    np.testing.assert_allclose(slow.arrival_s, 4 * fast.arrival_s)
    np.testing.assert_array_equal(slow.prompt_tokens, fast.prompt_tokens)


@pytest.mark.parametrize("variation", [0.0, 1.0, 4.0])
def test_gaps_have_the_mean_and_the_variation_that_are_asked_for(variation: float) -> None:
    spec = {"generator": "gamma", "rate_per_s": 5, "variation": variation, "count": 40_000}
    gaps = np.diff(load_requests(spec).drawn.arrival_s)
    assert gaps.mean() == pytest.approx(0.2, rel=0.1)
    assert gaps.std() / gaps.mean() == pytest.approx(variation, rel=0.1, abs=1e-9)


def test_a_poisson_process_is_a_gamma_process_of_variation_one() -> None:
    shared = {"rate_per_s": 3, "count": 50, "seed": 7}
    poisson = load_requests({"generator": "poisson", **shared}).drawn
    gamma = load_requests({"generator": "gamma", "variation": 1, **shared}).drawn
    np.testing.assert_array_equal(poisson.arrival_s, gamma.arrival_s)


def test_lengths_have_their_mean_and_variation() -> None:
    spec = {"generator": "poisson", "count": 50_000, "prompt_tokens": 500, "prompt_variation": 0.8}
    drawn = load_requests(spec).drawn
    assert drawn.prompt_tokens.mean() == pytest.approx(500, rel=0.03)
    assert drawn.prompt_tokens.std() / drawn.prompt_tokens.mean() == pytest.approx(0.8, rel=0.05)
    assert set(drawn.output_tokens) == {256}


def test_lengths_are_cut_only_where_they_vary() -> None:
    """A mean above the longest length is refused: all would be shorter than was asked for."""
    long = {"generator": "poisson", "count": 10, "prompt_tokens": 20_000, "output_tokens": 10}
    with pytest.raises(InvalidValueError, match=r"prompt_tokens is 20000; .*longest_tokens, 8192"):
        load_requests(long)
    with pytest.raises(InvalidValueError, match=r"output_tokens is 9000; .* give longest_tokens"):
        load_requests({"generator": "closed_loop", "output_tokens": 9000})
    assert load_requests({**long, "longest_tokens": 32_768}).longest_tokens == 20_010
    varied = {**long, "count": 1000, "prompt_variation": 2.0, "longest_tokens": 20_000}
    assert load_requests(varied).drawn.prompt_tokens.max() == 20_000


def test_the_seed_decides() -> None:
    spec = {"generator": "gamma", "count": 100, "prompt_variation": 1.0, "prefixes": 5}
    one, same, other = (load_requests({**spec, "seed": seed}) for seed in (1, 1, 2))
    assert one.sha256 == same.sha256 != other.sha256


def test_shared_prefixes_are_in_front_of_what_is_drawn() -> None:
    spec = {"generator": "poisson", "count": 200, "prompt_tokens": 100, "prefixes": 3,
            "prefix_tokens": 100, "prefix_block_tokens": 16}  # fmt: skip
    traffic = load_requests(spec)
    assert traffic.shares_prefixes
    assert set(traffic.drawn.prompt_tokens) == {100 + 96}  # six full blocks
    assert {len(one) for one in traffic.drawn.prefixes} == {6}
    assert len({tuple(one) for one in traffic.drawn.prefixes}) == 3


def test_a_closed_loop_has_users_and_no_times() -> None:
    traffic = load_requests({"trace": "azure_code", "users": 16, "count": 50})
    assert traffic.users == 16
    assert not traffic.drawn.arrival_s.any()


def test_a_file_of_ones_own_with_prefixes(tmp_path: Path) -> None:
    path = written(
        tmp_path, "10.5,64,5,a b", "11.0,80,1,a c", "12.5,32,9,", header=HEADER + ",prefix_hashes"
    )
    drawn = load_requests({"file": str(path), "prefix_block_tokens": 32}).drawn
    assert drawn.arrival_s.tolist() == [0.0, 0.5, 2.0]
    assert drawn.output_tokens.tolist() == [5, 1, 9]
    assert [one.tolist() for one in drawn.prefixes] == [[0, 1], [0, 2], []]


def test_only_some_lines_of_a_file(tmp_path: Path) -> None:
    header = f"{HEADER},day"
    path = written(tmp_path, "1,10,5,mo", "2,11,5,mo", "1,12,5,tu", "4,13,5,tu", header=header)
    drawn = load_requests({"file": str(path), "only": {"day": "tu"}}).drawn
    assert drawn.prompt_tokens.tolist() == [12, 13]
    assert drawn.arrival_s.tolist() == [0, 3]
    with pytest.raises(InvalidValueError, match=r"no line of .* has 'we' as its day"):
        load_requests({"file": str(path), "only": {"day": "we"}})
    with pytest.raises(UnknownNameError, match=r"unknown column 'days'. Did you mean 'day'"):
        load_requests({"file": str(path), "only": {"days": "tu"}})
    with pytest.raises(InvalidValueError, match="only is 'tu'; it must be a mapping"):
        load_requests({"file": str(path), "only": "tu"})


def test_a_file_in_the_form_of_the_azure_traces(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "2023-11-16 18:15:46.6805900,374,44",
        "2023-11-16 18:15:50.9951690,396,109",
        header="TIMESTAMP,ContextTokens,GeneratedTokens",
    )
    drawn = load_requests(path).drawn
    np.testing.assert_allclose(drawn.arrival_s, [0, 4.314579], atol=1e-6)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x,5,5", "line 3, column 'arrival_s': the value is 'x'"),
        ("0.5,5,5", "order of their arrival"),
        ("2,0,5", "line 3, column 'prompt_tokens'.*from 1 to 1,000,000"),
        ("2,5,1.5", "line 3, column 'output_tokens'"),
        ("2,5,", "line 3, column 'output_tokens'"),
        ("2,5,2000000", "from 1 to 1,000,000"),
        ("2,5", "line 3: 2 values for the 3 columns"),
        ("nan,5,5", "line 3, column 'arrival_s'"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = written(tmp_path, "1,5,5", line)
    with pytest.raises(InvalidValueError, match=message):
        load_requests(path)


def test_more_prefixes_than_the_prompt_has_blocks(tmp_path: Path) -> None:
    path = written(tmp_path, "1,20,5,a b", header=HEADER + ",prefix_hashes")
    with pytest.raises(InvalidValueError, match="its prompt has 1 full blocks"):
        load_requests({"file": str(path), "prefix_block_tokens": 16})


def test_a_missing_column_and_a_missing_file(tmp_path: Path) -> None:
    path = written(tmp_path, "1,20", header="arrival_s,prompt_tokens")
    with pytest.raises(InvalidValueError, match="no column output_tokens or GeneratedTokens"):
        load_requests(path)
    with pytest.raises(InvalidValueError, match=r"Did you mean '.*requests\.csv'"):
        load_requests(str(tmp_path / "request.csv"))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("azure_con", "Did you mean 'azure_conv'"),
        ({"generator": "poison"}, "Did you mean 'poisson'"),
        ({"trace": "azure_conv", "rate": 3}, "unknown key 'rate'.*rate_per_s"),
        ({"generator": "poisson", "users": 3}, "unknown key 'users'"),
        ({"trace": "azure_conv", "rate_per_s": 0}, "rate_per_s is 0; it must be a number from"),
        ({"generator": "poisson", "count": 2.5}, "count is 2.5; it must be a whole number"),
        ({"generator": "poisson", "rate_per_s": float("nan")}, "rate_per_s is nan"),
        ({"generator": "poisson", "prefixes": 2, "prefix_tokens": 8}, "prefix_tokens is 8"),
        ({"trace": "azure_conv", "users": 3, "rate_per_s": 2}, "exclude each other"),
        (7, "must be a trace, a path or a mapping"),
    ],
)
def test_a_bad_specification_is_named(spec: Any, message: str) -> None:
    with pytest.raises((InvalidValueError, UnknownNameError), match=message):
        load_requests(spec)
