"""Design spaces as the search spaces of other optimisers, with functions both ways."""

from archgym.space.libraries.configspace import ConfigSpaceEncoding

__all__ = ["ConfigSpaceEncoding"]
