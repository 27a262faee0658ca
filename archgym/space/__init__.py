"""Design spaces: typed parameters, conditions, rules, and every view that a search needs."""

from archgym.space.constraints import Rule
from archgym.space.design_space import DesignSpace
from archgym.space.designs import Designs
from archgym.space.encodings import (
    BoxEncoding,
    Encoding,
    FeatureEncoding,
    FlatEncoding,
    MultiDiscreteEncoding,
    OptunaEncoding,
    SkoptEncoding,
    UnitCubeEncoding,
)
from archgym.space.expression import Expression, param
from archgym.space.parameters import Boolean, Categorical, Integer, Ordinal, Parameter, Real

__all__ = [
    "Boolean",
    "BoxEncoding",
    "Categorical",
    "DesignSpace",
    "Designs",
    "Encoding",
    "Expression",
    "FeatureEncoding",
    "FlatEncoding",
    "Integer",
    "MultiDiscreteEncoding",
    "OptunaEncoding",
    "Ordinal",
    "Parameter",
    "Real",
    "Rule",
    "SkoptEncoding",
    "UnitCubeEncoding",
    "param",
]
