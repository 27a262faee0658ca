"""Search agents that ship with archgym; imported as ``archgym.agents``.

One module an agent family; the registry (:mod:`archgym.registry`) finds them by name. What they
share: ``moves`` (random moves in a design space), ``unseen`` (which designs are new), ``scores``
(one cost a design) and ``surrogates`` (models of the cost; imports scikit-optimize).
"""

if __name__ != "archgym.agents":
    raise ImportError(
        f"this folder is imported as 'archgym.agents', not as {__name__!r}: "
        "write 'from archgym.agents import ...' (the folder is linked into the package)"
    )
