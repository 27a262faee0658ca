"""Design spaces: typed parameters, conditions, rules, and every view that a search needs."""

from archgym.space.definition import Rule
from archgym.space.design_space import DesignSpace
from archgym.space.designs import Designs
from archgym.space.encoding import Encoding
from archgym.space.expression import Expression, param
from archgym.space.level_encodings import FlatEncoding, MultiDiscreteEncoding
from archgym.space.libraries import (
    AxEncoding,
    ConfigSpaceEncoding,
    NevergradEncoding,
    PymooEncoding,
)
from archgym.space.library_encodings import OptunaEncoding, SkoptEncoding
from archgym.space.listed import Boolean, Categorical, Ordinal
from archgym.space.number_encodings import BoxEncoding, FeatureEncoding, UnitCubeEncoding
from archgym.space.numeric import Integer, Real
from archgym.space.parameter import Parameter
from archgym.space.permutation import Permutation

__all__ = [
    "AxEncoding",
    "Boolean",
    "BoxEncoding",
    "Categorical",
    "ConfigSpaceEncoding",
    "DesignSpace",
    "Designs",
    "Encoding",
    "Expression",
    "FeatureEncoding",
    "FlatEncoding",
    "Integer",
    "MultiDiscreteEncoding",
    "NevergradEncoding",
    "OptunaEncoding",
    "Ordinal",
    "Parameter",
    "Permutation",
    "PymooEncoding",
    "Real",
    "Rule",
    "SkoptEncoding",
    "UnitCubeEncoding",
    "param",
]
