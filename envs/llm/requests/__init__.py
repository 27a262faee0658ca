"""Requests to a served model: recorded ones, files, generators."""
