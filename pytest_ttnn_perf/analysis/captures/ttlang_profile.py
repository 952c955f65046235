"""The auto-profile report of a tt-lang log: threads line by line, their summary, the roofline."""

from __future__ import annotations

import re
from dataclasses import replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.captures.ttlang_lines import DECIMAL, WHOLE, is_rule, whole
from pytest_ttnn_perf.records.ttlang import (
    AutoProfile,
    LineOp,
    LineProfile,
    ProblemKind,
    Roofline,
    ThreadProfile,
    ThreadTotal,
    ThreadWork,
    Wait,
)

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.captures.ttlang_lines import Lines


THREAD: Final = re.compile(
    r"THREAD: (\S{1,100}) +(?:\[([^\]]*)\] )?"
    rf"\(({WHOLE}) ops, ({WHOLE}) cycles, ({DECIMAL})% of total\)"
)
_COLUMN_TITLES: Final = ("LINE", "%TIME", "CYCLES", "SOURCE")
_NO_SOURCE: Final = re.compile(r" *\(no source available for kernel '.*'\)")
_HIT: Final = re.compile(rf"([0-9]{{1,9}}) +({DECIMAL})%  (({WHOLE})(?:-({WHOLE}))?)( .*)?")
_NOT_HIT: Final = re.compile(r"([0-9]{1,9})(?: (.*))?")
#: How wide tt-lang makes the columns before the source, where their text is not longer.
_CYCLES_WIDTH: Final = 10
_SOURCE_AT: Final = 26
_SUM: Final = re.compile(
    rf"  \(x({WHOLE})(?: = ({WHOLE}) cycles|, avg=({DECIMAL}), total=({WHOLE}))\)"
)
_BRANCHES: Final = ("├─ ", "╰─ ")
_OP: Final = re.compile(rf"({WHOLE}) (\S+)( \(implicit\))?(?: \(x({WHOLE})\))?")
_WAIT: Final = re.compile(
    rf"(?:({WHOLE}) cycles )?waiting for (\S+) @ line (-?[0-9]{{1,9}}) \((.*)\)"
)
_BARRIER: Final = re.compile(r"DMA barrier for CB\[([0-9]{1,9})\]")


class Listing:
    """What was read of one thread."""

    def __init__(self, found: re.Match[str]) -> None:
        thread, kernel, ops, cycles, percent = found.groups()
        self.total = ThreadTotal(thread, kernel, whole(ops), whole(cycles), float(percent))
        self._lines: list[_Line] = []
        self._has_source = True

    def read(self, line: str) -> bool:
        """Take in a line; False for one that is not understood."""
        if not line.strip("- ") or tuple(line.split()) == _COLUMN_TITLES:
            return True
        row = line.lstrip()
        if row.startswith(_BRANCHES):
            return bool(self._lines) and self._lines[-1].add(row[len(_BRANCHES[0]) :])
        if _NO_SOURCE.fullmatch(line):
            self._has_source = False
            return True
        profile = _hit(line) or _not_hit(line)
        if profile is None:
            return False
        self._lines.append(_Line(profile))
        return True

    def record(self) -> ThreadProfile:
        """Return the thread."""
        lines = tuple(line.record() for line in self._lines)
        return ThreadProfile(self.total, lines if self._has_source else None)


class _Line:
    """A source line with the rows below it."""

    def __init__(self, profile: LineProfile) -> None:
        self._profile = profile
        self._ops: list[LineOp] = []
        self._waits: list[Wait] = []
        self._barriers: list[int] = []

    def add(self, row: str) -> bool:
        wait, barrier, op = _WAIT.fullmatch(row), _BARRIER.fullmatch(row), _OP.fullmatch(row)
        if wait is not None:
            cycles = None if wait[1] is None else whole(wait[1])
            self._waits.append(Wait(wait[2], int(wait[3]), wait[4], cycles))
        elif barrier is not None:
            self._barriers.append(int(barrier[1]))
        elif op is not None:
            hits = 1 if op[4] is None else whole(op[4])
            self._ops.append(LineOp(op[2], whole(op[1]), hits, implicit=op[3] is not None))
        else:
            return False
        return True

    def record(self) -> LineProfile:
        known = self._profile
        # What ops tell, the line itself does not: its one number is their sum.
        told_by_ops = bool(self._ops)
        return LineProfile(
            known.line,
            known.source,
            known.percent,
            None if told_by_ops else known.shortest_cycles,
            None if told_by_ops else known.longest_cycles,
            known.average_cycles,
            known.total_cycles,
            None if told_by_ops else known.hits,
            tuple(self._ops),
            tuple(self._waits),
            tuple(self._barriers),
        )


def _hit(line: str) -> LineProfile | None:
    found = _HIT.fullmatch(line)
    if found is None:
        return None
    number, percent, cycles, shortest, longest, rest = found.groups()
    # The source keeps its own indentation: only the padding of the column goes.
    source = (rest or "")[max(_CYCLES_WIDTH - len(cycles), 0) + 1 :]
    least, most = whole(shortest), whole(longest or shortest)
    average: float | None = None
    hits, total = 1, least
    at = source.rfind("  (x")
    sums = _SUM.fullmatch(source, at) if at >= 0 else None
    if sums is not None:
        source, hits = source[:at], whole(sums[1])
        total = whole(sums[2] or sums[4])
        average = None if sums[3] is None else float(sums[3])
    return LineProfile(int(number), source, float(percent), least, most, average, total, hits)


def _not_hit(line: str) -> LineProfile | None:
    found = _NOT_HIT.fullmatch(line)
    if found is None or line[len(found[1]) : _SOURCE_AT].strip():
        return None
    return LineProfile(int(found[1]), line[_SOURCE_AT:])


_TOTAL: Final = re.compile(
    rf"  (\S{{1,100}}) +(?:\[([^\]]*)\] +)?({WHOLE}) cycles \( *({WHOLE}) ops\) \[ *({DECIMAL})%\]"
)
_WORK: Final = re.compile(rf"  (\S{{1,100}}) +({WHOLE}) +- +({WHOLE}) +=  *(-?{WHOLE})")
_WORK_TITLES: Final = ("Thread", "Total", "-", "Sync", "Waits", "=", "Work")
_SIDE: Final = re.compile(rf"  (Memory|Compute): +(-?{WHOLE}) cycles +\((\S+)\)")
_BOUND: Final = re.compile(r"  ([0-9]{1,3})% (memory|compute) bound")
_BALANCED: Final = "  Perfectly balanced!"
_BAR: Final = re.compile(r"  Compute ├[─●]{1,200}┤ Memory")
_BAR_CYCLES: Final = re.compile(rf" +(-?{WHOLE}) cycles +(-?{WHOLE}) cycles")


def thread_total(line: str) -> ThreadTotal | None:
    """Read a row of THREAD SUMMARY."""
    found = _TOTAL.fullmatch(line)
    if found is None:
        return None
    thread, kernel, cycles, ops, percent = found.groups()
    return ThreadTotal(thread, kernel, whole(ops), whole(cycles), float(percent))


class RooflineLines:
    """What was read of the roofline; ``record`` is None where there is none."""

    def __init__(self) -> None:
        self._threads: list[ThreadWork] = []
        self._fields = Roofline()
        self._bar_begun = False

    def read(self, line: str) -> bool:
        """Take in a line; False for one that is not understood."""
        if tuple(line.split()) == _WORK_TITLES or not line.strip("-= "):
            return True
        return self._read_work(line) or self._read_side(line) or self._read_bound(line)

    def _read_work(self, line: str) -> bool:
        found = _WORK.fullmatch(line)
        if found is not None:
            numbers = [whole(number) for number in found.group(2, 3, 4)]
            self._threads.append(ThreadWork(found[1], *numbers))
        return found is not None

    def _read_side(self, line: str) -> bool:
        found = _SIDE.fullmatch(line)
        if found is None:
            return False
        cycles, thread = whole(found[2]), found[3]
        if found[1] == "Memory":
            self._fields = replace(self._fields, memory_cycles=cycles, memory_thread=thread)
        else:
            self._fields = replace(self._fields, compute_cycles=cycles, compute_thread=thread)
        return True

    def _read_bound(self, line: str) -> bool:
        bound, cycles = _BOUND.fullmatch(line), _BAR_CYCLES.fullmatch(line)
        if bound is not None:
            self._fields = replace(self._fields, bound=bound[2], bound_percent=int(bound[1]))
        elif line == _BALANCED:
            self._fields = replace(self._fields, bound="balanced", bound_percent=0)
        elif _BAR.fullmatch(line):
            self._bar_begun = True
        elif cycles is not None and self._bar_begun:
            return self._read_bar_cycles(whole(cycles[1]), whole(cycles[2]))
        else:
            return False
        return True

    def _read_bar_cycles(self, compute: int, memory: int) -> bool:
        """Take in what stands below the bar; it repeats what stood above, where anything did."""
        self._bar_begun = False
        known = self._fields
        self._fields = replace(known, compute_cycles=compute, memory_cycles=memory)
        return known.compute_cycles in {None, compute} and known.memory_cycles in {None, memory}

    @property
    def complete(self) -> bool:
        """Whether nothing that was begun lacks its end."""
        return not self._bar_begun and (self._fields.bound is None) == (
            self._fields.memory_cycles is None and self._fields.compute_cycles is None
        )

    def record(self) -> Roofline | None:
        """Return the roofline."""
        roofline = replace(self._fields, threads=tuple(self._threads))
        return None if roofline == Roofline() else roofline


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
    """Collects the parts of a report from its lines."""

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
        has_totals = self._operations is not None and self._longest is not None
        return AutoProfile(
            self._operations,
            self._longest,
            self._buffers,
            threads,
            tuple(self._summary),
            self._roofline.record(),
            complete=self.closed
            and has_totals
            and listed == self._summary
            and self._roofline.complete,
        )
