"""The DRAM memory-controller environment and its embedded simulator."""
