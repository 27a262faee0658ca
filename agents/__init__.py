"""Search agents that ship with archgym; imported as ``archgym.agents``."""

if __name__ != "archgym.agents":
    raise ImportError(
        f"this folder is imported as 'archgym.agents', not as {__name__!r}: "
        "write 'from archgym.agents import ...' (the folder is linked into the package)"
    )
