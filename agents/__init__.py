"""Search agents that ship with archgym; imported as ``archgym.agents``.

Each module here has the name of the agent that it defines; the registry
(:mod:`archgym.registry`) finds agents by name. ``gp`` holds the search with Gaussian processes,
``rl`` the learners, and ``common`` what agents share: ``samplers`` (bases to derive from),
``unseen`` (which designs are new), ``moves`` (random moves in a design space) and ``scores`` (one
cost a design) among others.
"""

if __name__ != "archgym.agents":
    raise ImportError(
        f"this folder is imported as 'archgym.agents', not as {__name__!r}: "
        "write 'from archgym.agents import ...' (the folder is linked into the package)"
    )
