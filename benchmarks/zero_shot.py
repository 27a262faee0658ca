"""How good the first designs are that features of an unseen workload suggest, before any search.

``python -m benchmarks.zero_shot [--quick] [--environments ...] [--out FOLDER]`` makes the data of
``archgym proxy collect-workloads`` for DRAM and Accelerator from nothing (or takes what lies in
FOLDER). Then it leaves out one workload after another: all its rows, and all designs that only its
searches found. The start from the others gives five designs, which are simulated. Printed is, for
each objective, the share of workloads on which the best of the five is within 5 % of the best
design known, and the median of how much worse it is, for four ways to begin:

- ``start``: by features, :func:`archgym.proxy.zero_shot.zero_shot`;
- ``strict``: the same, with all variants of the workload left out too (the same program, generator
  or network with other settings);
- ``same``: all known workloads count alike, so that features play no part;
- ``random``: the best of five random designs, mean share and median over 20 draws.

The best known is that of the collected rows, and of searches by ``local`` and ``auto`` that
begin with the best designs of all workloads. Tested are workloads without variations: the recorded
programs and the generators, and the networks.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import archgym
from archgym.data import Dataset, load
from archgym.evaluation.outcome import Outcomes
from archgym.proxy.known_workloads import KnownWorkloads, described
from archgym.proxy.training.data import TrainingData, read_training_data
from archgym.proxy.training.recorded_features import recorded_features
from archgym.proxy.training.workload_collection import collect_workloads
from archgym.proxy.zero_shot import start
from archgym.registry import environment_class, make_agent
from archgym.space import Designs

NEAR = 0.05
FIRST = 5
_LATENCY_ENERGY = {"read_latency_mean_ns": 1, "energy_per_bit_pj": 1}
OBJECTIVES: dict[str, list[Any]] = {
    "DRAM-v0": [
        {"product": _LATENCY_ENERGY, "limits": ["buffer_bits <= 131072"]},
        {"product": {"read_latency_p99_ns": 1, "energy_per_bit_pj": 1, "buffer_bits": 0.25}},
        {"product": _LATENCY_ENERGY, "limits": ["buffer_bits <= 2048"]},
    ],
    "Accelerator-v0": [
        "minimize edp_js",
        {"minimize": "latency_ns", "limits": ["area_um2 <= 4000000"]},
        "minimize energy_pj",
    ],
}
ARGUMENTS: dict[str, dict[str, Any]] = {"DRAM-v0": {}, "Accelerator-v0": {"mapper": "edp"}}
SIZES = {"DRAM-v0": (200, 250, 4), "Accelerator-v0": (100, 150, 3)}
"""Designs that are drawn, searched and crossed, for some minutes of a core."""


@dataclass
class Known:
    """A collected dataset."""

    data: TrainingData
    first_hand: set[tuple[int, int]]
    """Workload and design, for rows that its own draws and searches gave."""


def main(arguments: list[str] | None = None) -> int:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="few workloads and designs, minutes")
    parser.add_argument("--environments", nargs="+", default=list(OBJECTIVES), choices=OBJECTIVES)
    parser.add_argument("--out", type=Path, default=Path("runs/zero_shot"))
    parser.add_argument("--tested", type=int, help="number of workloads that are left out")
    given = parser.parse_args(arguments)
    for name in given.environments:
        folder = given.out / (name + ("-quick" if given.quick else ""))
        _collect(name, folder, given.quick)
        _evaluate(name, folder, given.quick, given.tested)
    return 0


def _say(began: float, text: str) -> None:
    print(f"{time.process_time() - began:7.0f} CPU s  {text}", file=sys.stderr, flush=True)


def _is_plain(spec: dict[str, Any]) -> bool:
    """Whether a workload has no settings but its length."""
    return set(spec) <= {"recorded", "generator", "network", "requests"}


def _base(spec: dict[str, Any]) -> str:
    return str(spec.get("recorded") or spec.get("generator") or spec.get("network"))


def _make(name: str, workload: Any, objective: Any, **more: Any) -> archgym.Environment:
    return archgym.make(name, workload=workload, objective=objective, **ARGUMENTS[name], **more)


def _collect(name: str, folder: Path, quick: bool) -> None:
    if (folder / "done").exists():
        return
    began = time.process_time()
    workloads = list(environment_class(name).varied_workloads())
    if quick:
        plain = [one for one in workloads if _is_plain(one)]
        workloads = plain[:: 2 if name == "DRAM-v0" else 1][:10]
    drawn, searched, crossed = (60, 60, 2) if quick else SIZES[name]

    def make(workload: Any, objective: Any) -> archgym.Environment:
        return _make(name, workload, objective, record=folder)

    collect_workloads(
        *(make, workloads, OBJECTIVES[name]),
        drawn=drawn,
        searched=searched,
        crossed=crossed,
        hyperparameters={"effort": "fast"},
        progress=lambda text: _say(began, text),
    )
    Dataset(folder).seal()
    (folder / "done").touch()
    print(f"{name}: collected in {time.process_time() - began:.0f} CPU s", flush=True)


def _read(folder: Path) -> Known:
    rows = load(folder)
    data = read_training_data(rows, features=recorded_features(rows))
    own = read_training_data(load(folder, agents=["random", "auto"]))
    names = [one.name for one in data.origin.workloads]
    place = [names.index(one.name) for one in own.origin.workloads]
    pairs = zip(own.workload.tolist(), own.groups.tolist(), strict=True)
    return Known(data, {(place[w], group) for w, group in pairs})


def _evaluate(name: str, folder: Path, quick: bool, tested: int | None) -> None:
    began = time.process_time()
    known = _read(folder)
    data = known.data
    specs = [one.spec for one in data.origin.workloads]
    left_out = [n for n, spec in enumerate(specs) if _is_plain(spec)][:tested]
    found: dict[tuple[int, str], list[float]] = {}
    for number in left_out:
        for which, objective in enumerate(OBJECTIVES[name]):
            env = _make(name, specs[number], objective)
            best = _best_known(name, env, known, folder, quick)
            ways = {
                "start": _start(env, known, [number]),
                "strict": _start(
                    env, known, [n for n, s in enumerate(specs) if _base(s) == _base(specs[number])]
                ),
                "same": _start(env, known, [number], alike=True),
            }
            for way, designs in ways.items():
                cost = _costs(env.evaluate_batch(designs)).min()
                found.setdefault((which, way), []).append(float(np.expm1(cost - best)))
            drawn = env.design_space.sample(20 * FIRST, np.random.default_rng(1))
            costs = _costs(env.evaluate_batch(drawn)).reshape(20, FIRST).min(axis=1)
            found.setdefault((which, "random"), []).extend(np.expm1(costs - best).tolist())
            worse = "  ".join(
                f"{way} {found[which, way][-1]:.1%}" for way in ("start", "strict", "same")
            )
            _say(began, f"{env.workload_name}, objective {which + 1}: {worse}")
    print(f"\n{name}: {len(specs)} workloads, {len(data):,} rows, {len(left_out)} left out")
    print(f"{'objective':<90} " + " ".join(f"{way:>16}" for way in _WAYS))
    for which, objective in enumerate(OBJECTIVES[name]):
        print(f"{json.dumps(objective):<90} " + _line([found[which, way] for way in _WAYS]))
    objectives = range(len(OBJECTIVES[name]))
    every = [[x for which in objectives for x in found[which, way]] for way in _WAYS]
    print(f"{'all':<90} " + _line(every), flush=True)


_WAYS = ("start", "strict", "same", "random")


def _line(columns: list[list[float]]) -> str:
    texts = []
    for values in columns:
        worse = np.array(values)
        median = float(np.median(np.minimum(worse, 9.99)))
        texts.append(f"{(worse <= NEAR).mean():.0%}, {median:.1%}".rjust(16))
    return " ".join(texts)


def _costs(outcomes: Outcomes) -> NDArray[np.float64]:
    return np.where(outcomes.feasible, outcomes.costs[:, 0], np.inf)


def _known(known: Known, kept: list[int], allowed: NDArray[np.bool_]) -> KnownWorkloads:
    """What is known of some workloads, of designs that may be known."""
    data = known.data
    rows = np.isin(data.workload, kept) & allowed
    place = np.searchsorted(kept, data.workload[rows])
    features = [
        described(one.features, one.baseline) for one in (data.origin.workloads[n] for n in kept)
    ]
    return KnownWorkloads.of(
        features, place, data.codes[rows], data.targets[rows], data.groups[rows]
    )


def _start(
    env: archgym.Environment, known: Known, left_out: list[int], *, alike: bool = False
) -> Designs:
    data = known.data
    kept = [n for n in range(len(data.origin.workloads)) if n not in left_out]
    theirs = np.array(sorted({g for w, g in known.first_hand if w in kept}), dtype=np.uint64)
    table = _known(known, kept, np.isin(data.groups, theirs))
    names = [metric.name for metric in env.metrics]
    table = table.in_order([metric.name for metric in data.metrics], names)
    workloads = [data.origin.workloads[n] for n in kept]
    baselines = np.array([[one.baseline.get(n, np.nan) for n in names] for one in workloads])
    labels = [one.name for one in workloads]
    return start(table, baselines, labels, env, FIRST, FIRST, alike=alike).designs


def _best_known(
    name: str, env: archgym.Environment, known: Known, folder: Path, quick: bool
) -> float:
    """Cost of the best design known, kept in a file."""
    path = folder / "best.json"
    kept: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}
    key = f"{env.workload_name} {env.objective.to_json()}"
    if key in kept:
        return kept[key]
    codes = known.data.codes
    env.on_evaluated = None
    data = known.data
    number = [one.name for one in data.origin.workloads].index(env.workload_name)
    own = Designs(env.design_space, codes[data.workload == number])
    outcomes = env.evaluate_batch(own)
    order = np.argsort(_costs(outcomes), kind="stable")
    first, best = own[order[:20]], float(_costs(outcomes).min())
    budget = 150 if quick else 400
    for agent in ("local", "auto"):
        fresh = _make(name, env.workload, env.objective)
        searcher = make_agent(agent, fresh.design_space, ["minimize"], seed=11)
        result = searcher.search(fresh, budget, initial=first)
        if result.best is not None and result.best.feasible:
            again = fresh.evaluate_batch([result.best.design])
            best = min(best, float(_costs(again).min()))
    path.write_text(json.dumps({**kept, key: best}, indent=1))
    return best


if __name__ == "__main__":
    sys.exit(main())
