"""Search on the environments' own tasks: default and large spaces, limits, products, any scale.

``python -m benchmarks.real_tasks`` runs our agents and the peers of ``benchmarks.search_quality``
on the tasks of :mod:`benchmarks.real_tasks.tasks`, with everything at defaults, and reports the
median best value after 50, 100, 300 and 1,000 evaluations. The baseline design is the first
evaluation of every search, as in an experiment.

Half of the tasks are for development (``--half develop``); the other half (``--half judge``) is
looked at once, when a change is finished.
"""
