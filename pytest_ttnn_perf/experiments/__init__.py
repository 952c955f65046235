"""Measurements without a baseline: versions in turns, noise of tests."""
