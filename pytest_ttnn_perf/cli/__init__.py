"""``ttnn-perf``: one module per command, or per family that shares its arguments."""
