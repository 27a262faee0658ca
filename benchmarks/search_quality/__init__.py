"""Search quality: all agents, and other libraries' optimisers, on the same problems.

    python -m benchmarks.search_quality                  # the whole suite, about 2 hours on 2 cores
    python -m benchmarks.search_quality --subset         # 10 minutes
    python -m benchmarks.search_quality --list           # problems, contestants and what is missing

A run that is in the results already is not run again, so an interrupted suite goes on where it
stopped. See :mod:`benchmarks.search_quality.problems` for the problems,
:mod:`benchmarks.search_quality.plan` for budgets and seeds, and
:mod:`benchmarks.search_quality.report` for what the columns mean.
"""
