"""What turns designs into metrics: external programs, tables, a cache shared between trials."""
