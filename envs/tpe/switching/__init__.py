"""How often signals switch, and what that costs."""
