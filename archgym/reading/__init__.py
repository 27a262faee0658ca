"""Reading files that others wrote: with limits on their size, and without executing any."""
