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
from archgym.space.listed import Boolean, Categorical, Ordinal
from archgym.space.numeric import Integer, Real
from archgym.space.parameter import Parameter

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
