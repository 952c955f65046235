"""Progress while it is measured: a line that is rewritten on a terminal, plain lines in a log."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import field
from typing import TextIO

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import inert
from pytest_ttnn_perf.report.layout import cut_end

#: Back to the first column, and away with what stands in the line.
_CLEAR = "\r\x1b[2K"
_UP = "\x1b[A"


@dataclass(slots=True)
class LiveLine:
    """One line of a terminal that is rewritten; nothing of it stays once it is cleared."""

    stream: TextIO
    _is_shown: bool = False
    #: How far others have written in the line above it; None where it stands by itself.
    _above: int | None = None

    def show(self, text: str) -> None:
        """Show how far it is, in as much as a line holds."""
        self.stream.write(self._line(text))
        self.stream.flush()
        self._is_shown = True

    def show_below(self, text: str, column: int) -> None:
        """Show it below the line that others have written up to ``column``, and go back there."""
        self._is_shown, self._above = True, column
        self._write_below(self._line(text))

    def _line(self, text: str) -> str:
        # One column less: some terminals go to the next line once the last one is written.
        return _CLEAR + cut_end(inert(text), self._width() - 1)

    def _write_below(self, text: str) -> None:
        right = f"\x1b[{self._above}C" if self._above else ""
        self.stream.write(f"\n{text}{_UP}\r{right}")
        self.stream.flush()

    def _width(self) -> int:
        try:
            columns = os.get_terminal_size(self.stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        return columns or shutil.get_terminal_size().columns

    def clear(self) -> None:
        """Make room for what is printed next."""
        if not self._is_shown:
            return
        if self._above is None:
            self.stream.write(_CLEAR)
            self.stream.flush()
        else:
            self._write_below(_CLEAR)
        self._is_shown, self._above = False, None


@dataclass(slots=True)
class Ticker:
    """Shows the progress of a command on stderr; in a log, a line per milestone."""

    line: LiveLine = field(default_factory=lambda: LiveLine(sys.stderr))

    def show(self, line: str, milestone: bool) -> None:  # noqa: FBT001 (called by position)
        """Show how far it is."""
        if self.line.stream.isatty():
            self.line.show(line)
        elif milestone:
            self.line.stream.write(f"{inert(line)}\n")
            self.line.stream.flush()

    def close(self) -> None:
        """Leave nothing of it."""
        self.line.clear()
