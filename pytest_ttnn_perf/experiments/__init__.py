"""Measurements without a baseline: two versions in turns, and how noisy tests are."""
