"""What several commands need: the settings of the project, and a line of progress."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.run.settings import find_root, load_settings

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.settings import Settings


def project_settings() -> Settings:
    """Return what the project around the current folder configures."""
    return load_settings(find_root(Path.cwd()))


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
