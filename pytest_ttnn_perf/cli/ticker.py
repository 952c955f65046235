"""Progress on stderr."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(slots=True)
class Ticker:
    """Shows progress on stderr: one line that is rewritten, or a line per milestone in a log."""

    width: int = 0

    def show(self, line: str, milestone: bool) -> None:  # noqa: FBT001 (called by position)
        """Show how far it is."""
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{line:<{self.width}}")
            self.width = len(line)
        elif milestone:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Leave the line that was rewritten."""
        if self.width:
            sys.stderr.write("\n")
