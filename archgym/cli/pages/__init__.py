"""Pages of documentation, in Markdown, made from what they document."""

from archgym.cli.pages.agent import agent_page
from archgym.cli.pages.commands import commands_page
from archgym.cli.pages.environment import environment_page
from archgym.cli.pages.experiment import experiment_page

__all__ = ["agent_page", "commands_page", "environment_page", "experiment_page"]
