"""Where the commands of a declaration run: on this machine, or in a container on it."""
