"""Captures laid out for readers: ops, attributions, groups."""
