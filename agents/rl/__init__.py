"""Agents that learn a policy: single-agent and multi-agent reinforcement learning."""
