"""A stand-in for the profiler's Python side."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

# As the real one does, whoever imports it.
_HOME = Path(os.environ.get("TT_METAL_HOME") or Path.cwd())
(_HOME / "build" / "profiler" / "build_wasm" / "traces").mkdir(parents=True, exist_ok=True)


def signpost(header: str, message: str | None = None) -> None:
    """Leave a mark between the ops of the report."""
    text = f"{header}\n{message}" if message else header
    importlib.import_module("ttnn").tracy_message(f"`TT_SIGNPOST: {text}`")
    sys.stderr.write(f"INFO     | tracy:signpost:48 - {header}\n")
