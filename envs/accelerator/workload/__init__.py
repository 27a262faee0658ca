"""Layers and networks: shipped, from ONNX, or defined by the user."""
