"""The machine under test: what it is, and what is true of it during a run."""
