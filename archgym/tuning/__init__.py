"""Results of autotuners as environments and datasets: Kernel Tuner's cache files, and T4 files."""

from archgym.tuning.environment import TuningEnvironment, import_tuning, tuning_class
from archgym.tuning.file import TuningFile, read_tuning

__all__ = ["TuningEnvironment", "TuningFile", "import_tuning", "read_tuning", "tuning_class"]
