"""One module per capture format: its records, its reader, its metrics."""
