"""Readers of captures: records, reader and metrics of each format.

All raise InputError, with file and line, for a file that is damaged, cut or of another kind, and
UsageError for a window or a region that a capture does not have.
"""
