"""Errors, files, text: what every room may use."""
