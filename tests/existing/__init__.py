"""Existing tests, written with the helpers of tt-metal, gated without being changed."""
