"""One rule per file, named by its code."""
