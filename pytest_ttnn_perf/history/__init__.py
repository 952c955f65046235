"""Runs over time: their order, their series, their changes and their page."""
