"""Performance gates for TTNN model tests, as a pytest plugin."""

from __future__ import annotations

__version__ = "0.1.0"
#: What a test may catch; loaded when asked for.
_ERRORS = ("AccuracyError", "TtnnPerfError", "UsageError")


def __getattr__(name: str) -> object:
    if name in _ERRORS:
        from pytest_ttnn_perf.core import errors

        return getattr(errors, name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
