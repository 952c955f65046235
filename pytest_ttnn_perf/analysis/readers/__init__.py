"""Readers of captures: records, reader and metrics of each format.

All raise InputError, with file and line, for a file that is damaged, cut or of another kind, and
UsageError for a window or a region that a capture does not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_ttnn_perf.core.observation import Artifact


class CaptureFormat(Struct, frozen=True):
    """A capture format of a project, known by its content.

    ``recognises`` gets the beginning of a file, unpacked if it is gzipped: all of it up to 256 KiB.
    ``read`` gets the file, and returns its contents for a test.
    """

    name: str
    recognises: Callable[[bytes], bool]
    read: Callable[[Path], Artifact]

    def problem(self) -> str | None:
        if not isinstance(self.name, str) or not self.name.strip():
            return f"a name is a non-empty string, found {self.name!r}"
        for name in ("recognises", "read"):
            function = getattr(self, name)
            if not callable(function):
                return f"{self.name}: {name} is a function, found {function!r}"
        return None
