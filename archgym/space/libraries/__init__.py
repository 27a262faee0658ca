"""Design spaces as the search spaces of other optimisers, with functions both ways."""

from archgym.space.libraries.ax import AxEncoding
from archgym.space.libraries.configspace import ConfigSpaceEncoding
from archgym.space.libraries.nevergrad import NevergradEncoding
from archgym.space.libraries.pymoo import PymooEncoding

__all__ = ["AxEncoding", "ConfigSpaceEncoding", "NevergradEncoding", "PymooEncoding"]
