"""Compiled parts of the cost model; Python reaches them through the modules beside this folder."""
