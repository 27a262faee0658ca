"""What a design is made of: processing elements, edge blocks, bit heaps, encoders and adders."""
