"""What a search gains, or loses, from what earlier searches recorded.

    python -m benchmarks.history [--problems tables real] [--agents auto] [--seeds 20]

For each problem some searches of other problems are recorded first, 150 designs each: of the other
programs' tables, or of another workload of the same environment. Then each agent searches it from
nothing and with that history, on the same seeds.

"Within 1 %" has two meanings here. The first is of the value: at most 1.01 times the optimum's. The
second, printed under "regret", is that of :mod:`benchmarks.search_quality`: (value - optimum) is at
most 1 % of (median random design - optimum).

Bars, for ``auto``: on twelve problems on tables the median number of designs until the best is
within 1 % of the optimum is at most 5; on eight pairs of real tasks at most a quarter of what it
takes from nothing until the best known of 300 designs from nothing; on no problem is the best
after 100 designs worse than from nothing beyond the interval of the medians. With ``--misleading``
the history is of shuffled metrics, or turned round: no worse after 50 designs.
"""
