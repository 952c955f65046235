"""Readers of captures: records, reader and metrics of each format.

All raise InputError, with file and line, for a file that is damaged, cut or of another kind.
"""
