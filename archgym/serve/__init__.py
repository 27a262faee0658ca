"""``archgym serve``: programs in any language search, or simulate, by lines of JSON."""

from archgym.serve.messages import PROTOCOL
from archgym.serve.serve import CLIENT, Settings, serve

__all__ = ["CLIENT", "PROTOCOL", "Settings", "serve"]
