"""Versions of packages, for records of what results came from."""

from __future__ import annotations

import sys
from importlib import metadata


def version_of(package: str) -> str:
    """The version of a package; of one that runs from its source tree, what it says of itself.

    Args:
        package: that is installed or imported.

    Returns:
        Such as ``0.2.0``; ``unknown`` if nothing says it.
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return str(getattr(sys.modules.get(package), "__version__", "unknown"))
