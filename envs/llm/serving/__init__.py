"""Serving of language models, request by request: deployments, and what their requests see."""
