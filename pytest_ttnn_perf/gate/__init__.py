"""The gate: verdicts from numbers, baselines, one gated run and its record."""
