"""Layers and networks: shipped, from ONNX, or of one's own."""
