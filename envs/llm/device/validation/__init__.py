"""Reference figures: measured boards, published ratios, trained models."""
