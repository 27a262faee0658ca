"""The design space of TPE-v0."""
