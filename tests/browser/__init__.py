"""The page in a real browser; needs Chromium, and runs with ``make test-real``."""
