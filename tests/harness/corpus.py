"""Real captures, where a machine has them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def corpus_folder() -> Path:
    """Return where the captures would be: ``TTNN_PERF_CORPUS``, else beside the project."""
    given = os.environ.get("TTNN_PERF_CORPUS")
    return Path(given) if given else ROOT.parent / "shared" / "data"


def corpus(relative: str) -> Path:
    """Return a capture; skip the test where there is none."""
    path = corpus_folder() / relative
    if not path.exists():
        pytest.skip(f"the corpus has no {relative}: set TTNN_PERF_CORPUS to its folder")
    return path
