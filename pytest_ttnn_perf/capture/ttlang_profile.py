"""The auto-profile report of a tt-lang log: threads line by line, their summary, the roofline."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.capture.ttlang_lines import WHOLE, is_rule, whole
from pytest_ttnn_perf.capture.ttlang_profile_lines import THREAD, Listing
from pytest_ttnn_perf.capture.ttlang_roofline import RooflineLines, thread_total
from pytest_ttnn_perf.model.ttlang import AutoProfile, ProblemKind, ThreadTotal

if TYPE_CHECKING:
    from pytest_ttnn_perf.capture.ttlang_lines import Lines

_TITLE: Final = "AUTO-PROFILE REPORT"
_SUMMARY: Final = "THREAD SUMMARY"
_ROOFLINE: Final = "ROOFLINE ANALYSIS"
_OPERATIONS: Final = re.compile(rf"Total operations: ({WHOLE})")
_LONGEST: Final = re.compile(rf"Longest thread: ({WHOLE}) cycles")
_COLOURS: Final = re.compile(r"CB Colors:((?: +CB\[[0-9]{1,9}\])*)")
_BUFFER: Final = re.compile(r"CB\[([0-9]{1,9})\]")


class _Part(Enum):
    HEAD = auto()
    THREADS = auto()
    SUMMARY = auto()
    ROOFLINE = auto()


def read_auto_profile(lines: Lines) -> AutoProfile:
    """Read a report from its title on, up to its closing line.

    It is complete if that line is there and the summary has the threads that were listed.
    """
    start = lines.number
    report = _Report()
    lines.begin()
    while not lines.ends() and not report.closed:
        line = lines.peek() or ""
        if not line:
            lines.take()
        elif is_rule(line):
            report.rule()
            lines.take()
        elif report.read(line):
            lines.take()
        else:
            lines.skip_unread(_TITLE)
    record = report.record()
    if not record.complete:
        problem = f"{_TITLE}: ends early, or lacks threads that its summary has"
        lines.report(ProblemKind.CUT, problem, line=start)
    return record


class _Report:
    """What the lines of a report said so far."""

    def __init__(self) -> None:
        self.closed = False
        self._part = _Part.HEAD
        # A title has a rule below it; any other rule in the last parts closes the report.
        self._below_title = True
        self._operations: int | None = None
        self._longest: int | None = None
        self._buffers: tuple[int, ...] = ()
        self._listings: list[Listing] = []
        self._summary: list[ThreadTotal] = []
        self._roofline = RooflineLines()

    def rule(self) -> None:
        last_parts = self._part in {_Part.SUMMARY, _Part.ROOFLINE}
        self.closed = last_parts and not self._below_title
        self._below_title = False

    def read(self, line: str) -> bool:
        return self._read_title(line) or self._read_content(line)

    def _read_title(self, line: str) -> bool:
        found = THREAD.fullmatch(line)
        if found is not None and self._part in {_Part.HEAD, _Part.THREADS}:
            self._part = _Part.THREADS
            self._listings.append(Listing(found))
        elif line == _SUMMARY:
            self._part = _Part.SUMMARY
        elif line == _ROOFLINE and self._part is _Part.SUMMARY:
            self._part = _Part.ROOFLINE
        else:
            return False
        self._below_title = True
        return True

    def _read_content(self, line: str) -> bool:
        match self._part:
            case _Part.HEAD:
                return self._read_head(line)
            case _Part.THREADS:
                return self._listings[-1].read(line)
            case _Part.SUMMARY:
                total = thread_total(line)
                if total is not None:
                    self._summary.append(total)
                # The first releases drew the roofline below the summary, without a title.
                return total is not None or self._roofline.read(line)
            case _Part.ROOFLINE:
                return self._roofline.read(line)

    def _read_head(self, line: str) -> bool:
        operations, longest = _OPERATIONS.fullmatch(line), _LONGEST.fullmatch(line)
        colours = _COLOURS.fullmatch(line)
        if operations is not None:
            self._operations = whole(operations[1])
        elif longest is not None:
            self._longest = whole(longest[1])
        elif colours is not None:
            self._buffers = tuple(int(number) for number in _BUFFER.findall(colours[1]))
        else:
            return False
        return True

    def record(self) -> AutoProfile:
        threads = tuple(listing.record() for listing in self._listings)
        listed = [thread.total for thread in threads]
        told = self._operations is not None and self._longest is not None
        return AutoProfile(
            self._operations,
            self._longest,
            self._buffers,
            threads,
            tuple(self._summary),
            self._roofline.record(),
            complete=self.closed and told and listed == self._summary and self._roofline.complete,
        )
