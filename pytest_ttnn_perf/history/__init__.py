"""Runs over time: what was measured, when it changed, and what changed with it."""
