"""Arguments that several commands share, and where their defaults come from."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.run.settings import find_root, load_settings

if TYPE_CHECKING:
    import argparse

    from pytest_ttnn_perf.records.settings import Settings


SHAPES: Final = ("table", "json", "csv")


def add_format(parser: argparse.ArgumentParser, *more: str) -> None:
    """Declare ``--format``, with shapes that only one command has."""
    choices = (*SHAPES, *more)
    parser.add_argument("--format", choices=choices, default="table", help="default: table")


def add_window(parser: argparse.ArgumentParser) -> None:
    """Declare the window of a capture: ``--start`` and ``--end``."""
    parser.add_argument("--start", metavar="SIGNPOST", help="of a capture, what follows this one")
    parser.add_argument("--end", metavar="SIGNPOST", help="up to this one (default: its _END)")


def add_baselines(parser: argparse.ArgumentParser) -> None:
    """Declare ``--baselines``."""
    parser.add_argument(
        "--baselines", metavar="DIR", type=Path, help="where baselines live (default: baselines)"
    )


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
