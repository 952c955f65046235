"""The names under which a project configures us, and those that were meant to be one of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path


OWN_FILE: Final = "ttnn_perf.toml"
SHARED_FILE: Final = "pyproject.toml"
_MEANT: Final = frozenset({"ttnnperf", "pytestttnnperf"})


def is_meant(name: str) -> bool:
    """Tell whether a table's name means us, however it is spelt.

    >>> is_meant("ttnn_perf"), is_meant("pytest-ttnn-perf"), is_meant("ttnn")
    (True, True, False)
    """
    return name.lower().replace("-", "").replace("_", "") in _MEANT


def mentions_us(text: bytes) -> bool:
    """Tell cheaply whether a file may configure us: parsing it would cost every run."""
    return b"ttnnperf" in text.lower().replace(b"-", b"").replace(b"_", b"")


def files_of(folder: Path) -> list[Path]:
    """Return the files of a folder that configure us, or were meant to: those of our own first."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 (folders may be large)
    except OSError:
        return []
    own = [folder / name for name in names if _is_own(name)]
    return [*own, folder / SHARED_FILE] if _shares(folder / SHARED_FILE) else own


def _is_own(name: str) -> bool:
    stem, _, suffix = name.rpartition(".")
    return suffix.lower() == "toml" and is_meant(stem.lstrip("."))


def _shares(file: Path) -> bool:
    try:
        return mentions_us(file.read_bytes())
    except OSError:
        return False
