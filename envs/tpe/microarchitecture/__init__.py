"""The parts of a design: processing elements, edge blocks, bit heaps, encoders and adders."""
