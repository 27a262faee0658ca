"""The BOOM designs of the ICCAD'22 contest, as a table of what the contest's platform gives."""

from archgym.envs.cpu.boom.environment import BoomContest

__all__ = ["BoomContest"]
