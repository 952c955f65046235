"""The shell edge: ``ttnn-perf``, one module per command."""
