"""The evaluation core: every design is checked, counted, simulated, scored and recorded here."""
