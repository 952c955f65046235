"""Real captures, where a machine has them: those that ``corpus.txt`` names."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]


def corpus_folder() -> Path:
    """Return where the captures would be: ``TTNN_PERF_CORPUS``, else beside the project."""
    given = os.environ.get("TTNN_PERF_CORPUS")
    return Path(given) if given else ROOT.parent / "shared" / "data"


def captures(pattern: str) -> list[str]:
    """Name the captures of the list that a pattern fits: what else the folder has is nobody's."""
    listed = Path(__file__).with_name("corpus.txt").read_text(encoding="utf-8").splitlines()
    return [name for name in listed if PurePosixPath(name).match(pattern)]


def op_tables() -> list[Path]:
    """Return the op tables of the list that are there."""
    files = (corpus_folder() / name for name in captures("ops_perf/*.csv"))
    return [file for file in files if file.exists()]


def corpus(relative: str) -> Path:
    """Return a capture; skip the test where there is none."""
    path = corpus_folder() / relative
    if not path.exists():
        pytest.skip(f"the corpus has no {relative}: set TTNN_PERF_CORPUS to its folder")
    return path
