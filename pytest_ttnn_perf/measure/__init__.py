"""Timing: warm-up, samples, regions, pipelines. Knows nothing of tests or devices."""
