"""The mappings of Timeloop's sample Eyeriss, and its random search among them."""
