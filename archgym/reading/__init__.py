"""Reading what somebody else wrote: bounded, typed, never executed."""
