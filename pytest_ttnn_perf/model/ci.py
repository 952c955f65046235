"""The CI system that a run is part of."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class CiJob:
    """What the variables of a CI system tell of a job; nothing outside of one.

    ``annotates``: it turns lines of the output into annotations, as GitHub does. ``step_summary``
    is the file that it shows beside the job. ``runner`` is the name of the machine. ``folder``
    leads from the repository's root to where test ids start.
    """

    annotates: bool = False
    step_summary: Path | None = None
    runner: str | None = None
    folder: str = ""

    def path(self, file: str) -> str:
        """Return a file as seen from the repository's root."""
        return posixpath.normpath(posixpath.join(self.folder, file))
