"""Vision backbones whose latency was measured: their parts, modules, measurements, prediction."""
