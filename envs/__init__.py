"""Environments that ship with archgym; imported as ``archgym.envs``."""

if __name__ != "archgym.envs":
    raise ImportError(
        f"this folder is imported as 'archgym.envs', not as {__name__!r}: "
        "write 'from archgym.envs import ...' (the folder is linked into the package)"
    )
