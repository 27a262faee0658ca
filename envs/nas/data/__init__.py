"""Data sets: images and labels or masks, split into training and test."""

from __future__ import annotations

from archgym.envs.nas.data.dataset import Dataset, checked_folders, load

__all__ = ["Dataset", "checked_folders", "load"]
