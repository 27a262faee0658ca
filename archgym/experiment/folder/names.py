"""Names in the folder of a run that small processes need too."""

from __future__ import annotations

__all__ = ["FINISHED", "MANIFEST", "QUEUES"]

FINISHED = "finished"
"""The folder of results that are not recorded yet."""
MANIFEST = "checksums.json"
"""The file with the checksums of others."""
QUEUES = "queues"
"""The folder through which ``archgym worker`` gets designs."""
