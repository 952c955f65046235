"""Readers of captures, one format per file, recognised by content; and their metrics."""
