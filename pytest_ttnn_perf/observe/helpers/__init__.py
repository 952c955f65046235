"""The helpers that existing tests measure and compare with, observed while tests call them."""
