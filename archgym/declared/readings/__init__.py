"""How metrics are read out of what a program printed and wrote: at its end, and while it runs."""
