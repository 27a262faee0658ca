"""The mappings of ZigZag's search over loop orders, and its count of stalls."""
