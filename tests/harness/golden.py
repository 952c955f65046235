"""Whole outputs, compared with files that are read in review."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "golden" / "expected"


def assert_golden(name: str, text: str, folder: Path = FOLDER) -> None:
    """Compare ``text`` with the stored output ``name``; TTNN_PERF_GOLDEN=write stores it."""
    file = folder / f"{name}.txt"
    if os.environ.get("TTNN_PERF_GOLDEN") == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == file.read_text(encoding="utf-8"), f"differs from {file}"
