"""Scaling laws: values by hand, directions, and where they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from archgym.envs.llm.device.columns import AFTER_TRAINING, Columns
from archgym.envs.llm.device.loss import characters_per_token, out_of_range, predicted_loss
from archgym.envs.llm.device.model import Transformers


def columns(**changes: Any) -> Columns:
    values = {
        "layers": 28, "hidden": 1024, "heads": 8, "kv_heads": 4, "feedforward_ratio": 4,
        "vocabulary": 50304, "tied_embeddings": 0, "gated": 1, "weight_bits": 16,
        "activation_bits": 16, "kv_bits": 16, "quantization": AFTER_TRAINING, **changes,
    }  # fmt: skip
    return {
        name: np.array([value]) if isinstance(value, str) else np.array([float(value)])
        for name, value in values.items()
    }


def loss(gtokens: float = 100, law: str = "gemstones", **changes: Any) -> float:
    values = columns(**changes)
    return float(predicted_loss(Transformers(values), values, gtokens, law)[0])


def test_parameters_are_those_of_the_gemstones() -> None:
    for width, depth, theirs in ((768, 3, 103_814_400), (1024, 28, 543_482_880)):
        shape = columns(hidden=width, layers=depth, heads=width // 128, kv_heads=width // 256)
        ours = Transformers(shape).parameters[0]
        assert ours == pytest.approx(theirs, rel=1e-3)


def test_the_law_of_shapes_by_hand() -> None:
    n = 28 * 15 * 1024**2 + 2 * 50304 * 1024
    terms = ((1.6375654653, 1024, 0.30146699), (-0.0254911443, 28, 0.3655461733),
             (7.8653383939, n, 0.5055007692), (9.9838221358, 1e11, 0.4670177667))  # fmt: skip
    by_hand = np.exp(0.4195179541) + sum(np.exp(c) / x**p for c, x, p in terms)
    assert loss() == pytest.approx(by_hand, rel=1e-9)


def test_chinchilla_by_hand() -> None:
    n = 28 * 15 * 1024**2 + 32000 * 1024
    by_hand = 1.8172 + 482.01 / n**0.3478 + 2085.43 / 1e11**0.3658
    assert loss(law="chinchilla", vocabulary=32000) == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize("law", ["gemstones", "chinchilla"])
def test_more_of_everything_lowers_the_loss(law: str) -> None:
    for changes in ({"hidden": 2048}, {"layers": 40}, {"vocabulary": 98304}, {"kv_heads": 8}):
        assert loss(law=law, **changes) < loss(law=law)
    assert loss(300, law) < loss(100, law)


@pytest.mark.parametrize("kind", [AFTER_TRAINING, "in_training"])
def test_fewer_bits_never_lower_the_loss(kind: str) -> None:
    found = [loss(weight_bits=bits, quantization=kind) for bits in (16, 8, 6, 5, 4, 3, 2)]
    assert found == sorted(found)
    assert found[1] < found[0] + 0.01 < found[-1]
    for name in ("kv_bits", "activation_bits"):
        found = [loss(100, "gemstones", **{name: bits}) for bits in (16, 8, 4)]
        assert found == sorted(found)
        assert found[0] < found[-1]


def test_quantising_after_training_costs_more_after_longer_training() -> None:
    def added(gtokens: float, kind: str) -> float:
        return loss(gtokens, weight_bits=4, quantization=kind) - loss(gtokens)

    assert added(300, AFTER_TRAINING) > added(30, AFTER_TRAINING)
    assert added(300, "in_training") == pytest.approx(added(30, "in_training"))


def test_outside_of_the_ranges_is_counted() -> None:
    def outside(gtokens: float = 100, **changes: Any) -> float:
        values = columns(**changes)
        return float(out_of_range(Transformers(values), values, gtokens)[0])

    assert outside() == 0
    assert outside(1000) == 1
    assert outside(weight_bits=2) == 1
    assert outside(hidden=128, heads=2, kv_heads=1, layers=2, vocabulary=100_000) == 4


def test_larger_vocabularies_have_longer_tokens() -> None:
    lengths = characters_per_token(np.array([4096.0, 32000.0, 96000.0]))
    assert (np.diff(lengths) > 0).all()
    assert 3.5 < lengths[1] < 4.5
