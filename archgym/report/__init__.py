"""Reports: one HTML page of a run, with every chart and table, and figures for papers.

:func:`read_study` reads a run or a dataset once into the numbers that are shown,
:func:`write_report` makes the page and :func:`write_figures` and
:func:`write_tables` files of its charts and tables.
"""

from archgym.analysis.study import Problem, Searcher, Study
from archgym.report.page import write_report
from archgym.report.papers import FORMATS, check_formats, write_figures, write_tables
from archgym.report.reading import read_study

__all__ = [
    "FORMATS",
    "Problem",
    "Searcher",
    "Study",
    "check_formats",
    "read_study",
    "write_figures",
    "write_report",
    "write_tables",
]
