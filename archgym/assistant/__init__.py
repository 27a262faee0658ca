"""``archgym mcp``: tools for coding assistants, through the Model Context Protocol."""

from archgym.assistant.workplace import Limits, Workplace

__all__ = ["Limits", "Workplace"]
